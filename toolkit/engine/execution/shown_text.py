"""The text of one vendor call as it is written, shown without the key of the call."""

from toolkit.contract.events import TextDelta
from toolkit.engine.execution.job_run import JobRun
from toolkit.engine.text_streams import TextStreams
from toolkit.engine.transport.redaction import StreamRedactor


class ShownText:
    """The text of one call, for those who watch its run, workflow or job.

    Args:
        texts: shows it.
        job_run: the job whose newest attempt writes it.
        secret: the key of the call, which a vendor may echo, in two halves, too.
    """

    def __init__(self, texts: TextStreams, job_run: JobRun, secret: str) -> None:
        self._texts = texts
        self._job = job_run.job
        self._resources = tuple({job_run.resource_id, job_run.job.id})
        self._attempt = job_run.job.attempts[-1].n
        self._redactor = StreamRedactor(secret)

    def add(self, piece: str) -> None:
        """Show a piece."""
        self._show(self._redactor.add(piece))

    def add_rest(self) -> None:
        """Show what was held back, as the text is complete."""
        self._show(self._redactor.finish())

    def _show(self, text: str) -> None:
        if not text:
            return
        job = self._job
        delta = TextDelta(
            resource_id="", job_id=job.id, node_id=job.node_id, attempt=self._attempt, text=text
        )
        self._texts.add(*self._resources, delta=delta)

    def end(self) -> None:
        """Show no more, be it complete or not."""
        self._texts.end(*self._resources, job_id=self._job.id)
