"""Streams of events: what the service sends, as records."""

from toolkit.contract.events import Event, TextDelta
from toolkit.contract.server_sent_events import EventDecoder

STREAM_TYPE = "text/event-stream"
# The service says that it is there after so long; a stream that is silent for longer is broken.
STREAM_SILENCE_S = 30.0


class EventParser:
    """A parser of a stream, whose pieces are cut anywhere."""

    def __init__(self) -> None:
        self._decoder = EventDecoder()

    def parse(self, data: bytes) -> list[Event | TextDelta]:
        """Return what is complete with this."""
        return [
            (TextDelta if one.type == "delta" else Event).model_validate_json(one.data)
            for one in self._decoder.decode(data)
        ]
