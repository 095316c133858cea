"""`text.generate`: the alias of `llm.generate` for editorial copy; the registry loads it."""

from dataclasses import replace

from toolkit.capabilities.llm_generate import CAPABILITY as LLM_GENERATE

CAPABILITY = replace(
    LLM_GENERATE,
    id="text.generate",
    title="Write copy",
    description="Writes editorial copy; another name of `llm.generate`.",
    alias_of="llm.generate",
)
