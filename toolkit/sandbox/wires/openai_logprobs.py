"""Log-probabilities of a simulated answer's tokens, in the form of the `openai` wire."""

import math

from toolkit.sandbox.json_http import JsonObject
from toolkit.sandbox.text.chat import split_tokens

_SURE = -0.0001  # log-probability of a token that leaves the model no choice


def build_logprobs(text: str, digest: str) -> JsonObject:
    """Build the log-probabilities of an answer, which the digest of the request decides.

    The model is sure of all tokens except for the longest, which is the first part of a label.
    """
    tokens = split_tokens(text)
    doubtful = max(range(len(tokens)), key=lambda place: len(tokens[place]), default=-1)
    doubt = math.log(1.0 - 0.7 * (int(digest[:8], 16) / 2**32) ** 3)
    rows = [
        {
            "token": token,
            "logprob": doubt if place == doubtful else _SURE,
            "bytes": list(token.encode()),
            "top_logprobs": [],
        }
        for place, token in enumerate(tokens)
    ]
    return {"content": rows, "refusal": None}
