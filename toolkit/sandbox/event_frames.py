"""Frames of `application/vnd.amazon.eventstream`, in which AWS streams its answers."""

import json
import struct
from zlib import crc32

_STRING_TYPE = 7


def format_event_frame(name: str, data: object, kind: str = "event") -> bytes:
    """Format an event, or an `exception`, as a frame of the stream.

    A frame consists of its lengths, their checksum, its headers, its JSON, and a total checksum.

    Source: AWS SDK reference, "Event stream encoding".
    """
    headers = b"".join(
        bytes([len(key)]) + key.encode() + struct.pack("!BH", _STRING_TYPE, len(value)) + value
        for key, value in (
            (":message-type", kind.encode()),
            (f":{kind}-type", name.encode()),
            (":content-type", b"application/json"),
        )
    )
    payload = json.dumps(data).encode()
    prelude = struct.pack("!II", 16 + len(headers) + len(payload), len(headers))
    frame = prelude + struct.pack("!I", crc32(prelude)) + headers + payload
    return frame + struct.pack("!I", crc32(frame))
