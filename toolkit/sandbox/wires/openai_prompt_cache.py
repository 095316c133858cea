"""The prompt cache of the `openai` wire, as GPT-5.6 and later models have it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from toolkit.sandbox.json_http import JsonObject
from toolkit.sandbox.text.chat import count_prompt_tokens, parse_turns

MIN_CACHED_TOKENS = 1024
LIFETIME_S = 30 * 60.0
BREAKPOINT = "prompt_cache_breakpoint"
MODES = ("implicit", "explicit")
# The fields whose content comes before the messages in a cached prefix.
_LEADING_FIELDS = ("model", "prompt_cache_key", "tools", "response_format")


@dataclass(frozen=True, slots=True)
class CacheUse:
    """The tokens of a prompt that were read from the cache and written to it."""

    read: int = 0
    written: int = 0


@dataclass(slots=True)
class PromptCache:
    """The prefixes that were written, by digest, each with the time at which it expires."""

    _expiry_by_prefix: dict[str, float] = field(default_factory=dict)

    def use(self, body: JsonObject, now_s: float) -> CacheUse:
        """Read the longest cached prefix of a request, and write the prefix that it marks.

        In the mode `implicit`, which is the default, the end of the newest message is marked. In
        the mode `explicit` only breakpoints mark a prefix; without any, nothing is read or written.
        """
        messages: list[JsonObject] = body["messages"]
        explicit = (body.get("prompt_cache_options") or {}).get("mode") == "explicit"
        marked = [n for n, one in enumerate(messages, start=1) if _has_breakpoint(one)]
        if not explicit:
            marked.append(len(messages))
        readable = marked if explicit else range(1, len(messages) + 1)
        read = max((self._find_cached(body, end, now_s) for end in readable), default=0)
        longest = max(marked, default=0)
        whole = _count_prefix_tokens(messages[:longest])
        if whole < MIN_CACHED_TOKENS or whole <= read:
            return CacheUse(read)
        self._expiry_by_prefix[_digest_prefix(body, longest)] = now_s + LIFETIME_S
        return CacheUse(read, whole - read)

    def _find_cached(self, body: JsonObject, end: int, now_s: float) -> int:
        """Return the tokens of the first `end` messages if they are cached, and 0 if not."""
        expiry = self._expiry_by_prefix.get(_digest_prefix(body, end), now_s)
        return _count_prefix_tokens(body["messages"][:end]) if expiry > now_s else 0


def _has_breakpoint(message: JsonObject) -> bool:
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    return any(isinstance(part, dict) and part.get(BREAKPOINT) for part in parts)


def _count_prefix_tokens(messages: Sequence[JsonObject]) -> int:
    return count_prompt_tokens(parse_turns(messages)) if messages else 0


def _digest_prefix(body: JsonObject, end: int) -> str:
    leading: list[Any] = [body.get(name) for name in _LEADING_FIELDS]
    spelled = json.dumps([*leading, body["messages"][:end]], sort_keys=True)
    return sha256(spelled.encode()).hexdigest()
