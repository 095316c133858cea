"""The pieces of a text as it is written, as a caller gets them."""

from toolkit.contract.events import TextDelta


class TextPiece(str):
    """A piece of a text.

    Attributes:
        restarts: whether the text begins anew with it, as what was written before came to nothing:
            a try that failed, or a text that was stored in another form.
        job_id: the job that writes it; empty where that is the one that was asked for.
        node_id: the node that writes it; empty outside workflows.
    """

    restarts: bool
    job_id: str
    node_id: str

    @classmethod
    def of(
        cls, text: str, *, restarts: bool = False, job_id: str = "", node_id: str = ""
    ) -> "TextPiece":
        """Make a piece."""
        made = cls(text)
        made.restarts, made.job_id, made.node_id = restarts, job_id, node_id
        return made


class TextAssembler:
    """Puts a text together as it is written, and tells what is left of it at the end."""

    def __init__(self) -> None:
        self._seen = ""
        self._attempt = 0
        self._begins = False
        self._job_id = self._node_id = ""

    def begin(self) -> None:
        """Take the next delta as the text from its beginning: a stream that begins gives that."""
        self._begins = True

    def add(self, delta: TextDelta) -> TextPiece:
        """Return the piece that was written, which is empty where nothing of it is new."""
        begins, self._begins = self._begins, False
        self._job_id, self._node_id = delta.job_id, delta.node_id or ""
        if begins and delta.attempt == self._attempt:
            return self.complete(delta.text) or self._make_piece("")
        restarts = bool(self._seen) and delta.attempt != self._attempt
        self._seen = delta.text if restarts else self._seen + delta.text
        self._attempt = delta.attempt
        return self._make_piece(delta.text, restarts=restarts)

    def repeat(self) -> TextPiece:
        """Return all that was written so far, for who has seen nothing of it."""
        return self._make_piece(self._seen)

    def complete(self, text: str) -> TextPiece | None:
        """Return what is left of the text that was stored; none where all of it was seen."""
        if text == self._seen:
            return None
        is_more = text.startswith(self._seen)
        left = text.removeprefix(self._seen) if is_more else text
        self._seen = text
        return self._make_piece(left, restarts=not is_more)

    def _make_piece(self, text: str, *, restarts: bool = False) -> TextPiece:
        return TextPiece.of(text, restarts=restarts, job_id=self._job_id, node_id=self._node_id)
