"""Probes: one more thing in a list of what is judged, whose verdict is known.

Material that shows a pattern of attack may have captured the judge that reads it. A judge that
calls a made-up word supported, or relevant, has been; what else it says is not believed then. A
probe costs no call of its own.
"""

from __future__ import annotations

from dataclasses import replace

from assay.errors import ModelError
from assay.graders.judges.fence import fenced
from assay.graders.judges.prompt import Prompt

__all__ = ["captured", "probe_word", "unguessable"]


def probe_word(text: str) -> str:
    """A word that no text holds: nobody can guess it, and it differs from process to process.

    Args:
        text: What is judged; the same text has the same word.
    """
    _, nonce = fenced("probe", text)
    return "".join(chr(ord("a") + int(digit, 16)) for digit in nonce[:8]) + "ium"


def unguessable(prompt: Prompt, word: str) -> Prompt:
    """The prompt, with the word left out of the cache's key."""
    return replace(prompt, volatile=(*prompt.volatile, word)) if word else prompt


def captured(what: str) -> ModelError:
    """The error of a judge that a probe has found out.

    Args:
        what: What it said of the made-up word.
    """
    return ModelError(
        f"the judge says of a made-up word that {what}: it cannot be believed", kind="unbelievable"
    )
