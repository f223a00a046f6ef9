"""Fences: how text that nobody trusts stands in a prompt so that it cannot speak for it.

A fence is a pair of lines whose name nobody can guess: a MAC of the text under a key that this
process alone has. Inside, no ``<`` survives, so that neither the fence nor a chat template's
control token can be written, and what is invisible is made visible.
"""

from __future__ import annotations

import hashlib
import re
import secrets

__all__ = ["fenced", "hidden_characters", "unescaped", "unhidden", "visible"]

_KEY = secrets.token_bytes(32)

# Without zero-width joiners and variation selectors, which scripts and emoji need.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f\U000e0100-\U000e01ef]"
)
# Chat templates of some models take these for the end of a turn.
_TURNS = re.compile(r"\[(?=/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_RESULTS|TOOL_CALLS)\])")
_WRITTEN = re.compile(r"\\u(?:([0-9a-fA-F]{4})|\{([0-9a-fA-F]{1,6})\})")


def visible(text: str) -> str:
    r"""The text with what cannot be seen written as ``\u{200b}``."""
    if text.isascii() and text.isprintable():
        return text
    return _HIDDEN.sub(lambda found: f"\\u{{{ord(found[0]):x}}}", text)


def hidden_characters(text: str) -> int:
    """How many characters of a text cannot be seen."""
    return 0 if text.isascii() and text.isprintable() else len(_HIDDEN.findall(text))


def unhidden(text: str) -> str:
    """The text without what cannot be seen."""
    return _HIDDEN.sub("", text)


def fenced(name: str, text: str) -> tuple[str, str]:
    r"""Put a text into a fence.

    Args:
        name: What it is: ``answer``, ``document-2`` ...
        text: Anything. Every ``<`` is written ``\u003c``.

    Returns:
        The fenced block, and the name of its fence, which differs from process to process.
    """
    shown = visible(text).replace("<", "\\u003c")
    if "[" in shown:
        shown = _TURNS.sub(r"\\u005b", shown)
    mac = hashlib.blake2b(key=_KEY, digest_size=8)
    mac.update(f"{len(name)}:{name}".encode())
    mac.update(shown.encode())
    nonce = mac.hexdigest()
    block = f'<untrusted name="{name}" id="{nonce}">\n{shown}\n</untrusted id="{nonce}">'
    return block, nonce


def unescaped(text: str) -> str:
    r"""A text with ``\u003c`` and ``\u{200b}`` as the characters that they stand for."""
    if "\\u" not in text:
        return text
    return _WRITTEN.sub(lambda found: _character(found[1] or found[2], found[0]), text)


def _character(digits: str, written: str) -> str:
    number = int(digits, 16)
    return chr(number) if number < 0x110000 else written
