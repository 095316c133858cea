"""The prompt cache of the `openai` wire for GPT-5.6 and later models."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256

from toolkit.sandbox.json_http import JsonObject
from toolkit.sandbox.text.chat import ChatMessage, count_prompt_tokens, parse_turns

MIN_CACHED_TOKENS = 1024
LIFETIME_S = 30 * 60.0
BREAKPOINT = "prompt_cache_breakpoint"
# The fields whose content comes before the messages in a cached prefix.
LEADING_FIELDS = {"model", "prompt_cache_key", "tools", "response_format"}


@dataclass(frozen=True, slots=True)
class CacheUse:
    """The tokens of a prompt that were read from the cache and written to it."""

    read_tokens: int = 0
    write_tokens: int = 0


@dataclass(slots=True)
class PromptCache:
    """The prefixes that were written, by digest, each with the time at which it expires."""

    _expiry_by_prefix: dict[str, float] = field(default_factory=dict)

    def use(
        self,
        leading: JsonObject,
        messages: Sequence[ChatMessage],
        now_s: float,
        *,
        explicit: bool = False,
    ) -> CacheUse:
        """Read the longest cached prefix of a request, and write the prefix that it marks.

        Args:
            explicit: False marks the end of the newest message, as the mode `implicit` does. True
                leaves that to breakpoints; without any, nothing is read or written.
        """
        prefixes = [_digest_prefix(leading, messages[:end]) for end in range(len(messages) + 1)]
        marked = [n for n, message in enumerate(messages, start=1) if _has_breakpoint(message)]
        if not explicit:
            marked.append(len(messages))
        readable = marked if explicit else range(1, len(messages) + 1)
        cached = [end for end in readable if self._expiry_by_prefix.get(prefixes[end], 0) > now_s]
        read = _count_prefix_tokens(messages[: max(cached, default=0)])
        longest = max(marked, default=0)
        total = _count_prefix_tokens(messages[:longest])
        if total < MIN_CACHED_TOKENS or total <= read:
            return CacheUse(read)
        self._expiry_by_prefix[prefixes[longest]] = now_s + LIFETIME_S
        return CacheUse(read, total - read)


def _has_breakpoint(message: ChatMessage) -> bool:
    parts = message.content if isinstance(message.content, list) else []
    return any(isinstance(part, dict) and part.get(BREAKPOINT) for part in parts)


def _count_prefix_tokens(messages: Sequence[ChatMessage]) -> int:
    return count_prompt_tokens(parse_turns(messages)) if messages else 0


def _digest_prefix(leading: JsonObject, messages: Sequence[ChatMessage]) -> str:
    spelled = json.dumps([leading, *(message.model_dump() for message in messages)], sort_keys=True)
    return sha256(spelled.encode()).hexdigest()
