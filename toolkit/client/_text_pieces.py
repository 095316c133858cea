"""The pieces of a text while it is written."""

from toolkit.contract.events import TextDelta


class TextPiece(str):
    """A piece of a text.

    Attributes:
        restarts: whether the text begins again with this piece, because earlier pieces are void: an
            attempt failed, or the text was stored in another form.
        job_id: the job that writes it; empty if it is the job that the caller asked for.
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
        piece = cls(text)
        piece.restarts, piece.job_id, piece.node_id = restarts, job_id, node_id
        return piece


class TextAssembler:
    """An assembler of a text from its deltas, which returns the missing rest at the end."""

    def __init__(self) -> None:
        self._seen = ""
        self._attempt = 0
        self._begins = False
        self._job_id = self._node_id = ""

    def begin(self) -> None:
        """Treat the next delta as the whole text so far, which a new stream sends first."""
        self._begins = True

    def add(self, delta: TextDelta) -> TextPiece:
        """Return the new piece of the text, which is empty if the delta has no new text."""
        begins, self._begins = self._begins, False
        self._job_id, self._node_id = delta.job_id, delta.node_id or ""
        if begins and delta.attempt == self._attempt:
            return self.complete(delta.text) or self._make_piece("")
        restarts = bool(self._seen) and delta.attempt != self._attempt
        self._seen = delta.text if restarts else self._seen + delta.text
        self._attempt = delta.attempt
        return self._make_piece(delta.text, restarts=restarts)

    def repeat(self) -> TextPiece:
        """Return all text so far, for a follower that has seen nothing of it."""
        return self._make_piece(self._seen)

    def complete(self, text: str) -> TextPiece | None:
        """Return the unseen rest of the stored text. Returns None if all of it was seen."""
        if text == self._seen:
            return None
        is_more = text.startswith(self._seen)
        remainder = text.removeprefix(self._seen) if is_more else text
        self._seen = text
        return self._make_piece(remainder, restarts=not is_more)

    def _make_piece(self, text: str, *, restarts: bool = False) -> TextPiece:
        return TextPiece.of(text, restarts=restarts, job_id=self._job_id, node_id=self._node_id)
