"""Streams of events: what the service sends, as records."""

from toolkit.contract.events import Event, TextDelta
from toolkit.contract.server_sent_events import EventDecoder

STREAM_TYPE = "text/event-stream"
# The service says that it is there after so long; a stream that is silent for longer is broken.
STREAM_SILENCE_S = 30.0


def parse_events(decoder: EventDecoder, data: bytes) -> list[Event | TextDelta]:
    """Parse what is complete with a piece of a stream, whose pieces are cut anywhere."""
    return [
        (TextDelta if one.type == "delta" else Event).model_validate_json(one.data)
        for one in decoder.decode(data)
    ]
