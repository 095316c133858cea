"""Real tokenizers, with the vocabularies that their packages contain; nothing is downloaded."""

import warnings
from collections.abc import Callable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import TypeAlias

from sentencepiece import SentencePieceProcessor

Count: TypeAlias = Callable[[str], int]

_OPENAI = ("cl100k_base", "o200k_base")
_SENTENCEPIECE = ("tokenizer.model.v1", "mistral_instruct_tokenizer_240323.model.v3")
_TEKKEN = "tekken_240911.json"


def load_tokenizers(folder: Path | None = None) -> Mapping[str, Count]:
    """Return the function that counts tokens of each tokenizer, by name.

    Args:
        folder: directory with more tokenizers, as `tokenizer.json` files at any depth; each is
            named by its own folder.
    """
    counts: dict[str, Count] = {name: _openai(name) for name in _OPENAI}
    data = files("mistral_common") / "data"
    counts |= {name: _sentencepiece(str(data / name)) for name in _SENTENCEPIECE}
    counts["tekken"] = _tekken(str(data / _TEKKEN))
    for path in sorted(folder.rglob("tokenizer.json")) if folder else ():
        counts[str(path.parent.relative_to(folder or path))] = _hugging_face(path)
    return counts


def _openai(name: str) -> Count:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # from reading its own files
        import bpe_openai

        encoding = bpe_openai.get_encoding(name)
    return lambda text: len(encoding.encode_ordinary(text))


def _sentencepiece(path: str) -> Count:
    model = SentencePieceProcessor(model_file=path)
    return lambda text: len(model.encode(text))


def _tekken(path: str) -> Count:
    from mistral_common.tokens.tokenizers.tekken import Tekkenizer

    tokenizer = Tekkenizer.from_file(path)
    return lambda text: len(tokenizer.encode(text, bos=False, eos=False))


def _hugging_face(path: Path) -> Count:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(path))
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)
