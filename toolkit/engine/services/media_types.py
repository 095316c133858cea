"""Detection of the media type from the bytes themselves, not from the sender's declaration."""

import codecs

from toolkit.engine.concurrency.fair_semaphore import FairSemaphore
from toolkit.engine.concurrency.threads import start_thread
from toolkit.engine.transport.driver import Driver
from toolkit.media.signatures import match_signature
from toolkit.plugins import ProviderError, RunInProcess
from toolkit.store import Content, iter_chunks
from toolkit.workers.json_check import is_json

# Content up to this size is scanned on the event loop.
MAX_INLINE_BYTES = 64 * 1024
_JSON_BEGINS = frozenset(b'{["-0123456789tfn')
_JSON_ENDS = frozenset(b'}]"0123456789el')
_BLANK = b" \t\r\n"


async def find_media_type(
    content: Content, driver: Driver, in_memory: FairSemaphore, account_id: str
) -> str:
    """Detect the media type of bytes; large content is scanned in a thread or worker process.

    Args:
        driver: driver whose worker processes parse documents that may be slow.
        in_memory: semaphore that limits the documents that are in memory whole.
        account_id: id of the account, for fairness among accounts.
    """
    if len(content) <= MAX_INLINE_BYTES:
        media_type = detect_media_type(content)
        return media_type or _choose_text_type(is_json(_read_all(content)))
    media_type = await start_thread(lambda: detect_media_type(content))
    if media_type is not None:
        return media_type
    async with in_memory.hold(account_id):
        try:
            step = RunInProcess(is_json, (await start_thread(lambda: _read_all(content)),))
            return _choose_text_type(bool(await driver.run_in_process(step, account_id)))
        except ProviderError:  # a document that a worker cannot parse is of no use to any reader
            return "text/plain"


def detect_media_type(content: Content) -> str | None:
    """Detect the media type of bytes; None for a text that may be JSON.

    >>> detect_media_type(b"hello")
    'text/plain'
    """
    decode = codecs.getincrementaldecoder("utf-8")().decode
    first, last, is_text = 0, 0, True
    for n, piece in enumerate(iter_chunks(content)):
        data = bytes(piece)
        if n == 0:
            media_type = match_signature(data)
            if media_type is not None:
                return media_type
        try:
            decode(data)
        except UnicodeDecodeError:
            is_text = False
        if not is_text or b"\0" in data:
            return "application/octet-stream"
        text = data.strip(_BLANK)
        if text:
            first, last = first or text[0], text[-1]
    try:
        decode(b"", True)
    except UnicodeDecodeError:
        return "application/octet-stream"
    return None if first in _JSON_BEGINS and last in _JSON_ENDS else "text/plain"


def _read_all(content: Content) -> bytes:
    return content if isinstance(content, bytes) else content.read()


def _choose_text_type(has_json: bool) -> str:
    return "application/json" if has_json else "text/plain"
