"""HTML elements in which text is always escaped: only an `Html` is taken as it is."""

from __future__ import annotations

from html import escape
from typing import TypeAlias

from assay.reports.plain import plain

__all__ = ["Attribute", "Html", "element", "joined"]

Attribute: TypeAlias = "str | float | bool | None"
"""The value of an attribute; True is one without a value, None and False leave it out."""

_VOID = frozenset({"br", "meta", "rect", "circle", "line"})


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def element(name: str, /, *children: str | None, **attributes: Attribute) -> Html:
    """One element.

    Args:
        name: Its tag.
        children: Text, which is made safe to show and escaped, or `Html`; None is left out.
        **attributes: By name, with ``_`` for ``-`` and a trailing one dropped (``class_``).
    """
    opened = name + "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Html(f"<{opened}>") if name in ("br", "meta") else Html(f"<{opened}/>")
    return Html(f"<{opened}>{joined(*children)}</{name}>")


def joined(*children: str | None) -> Html:
    """Several children in a row."""
    return Html("".join(_safe(child) for child in children if child is not None))


def _safe(child: str) -> str:
    return child if isinstance(child, Html) else escape(plain(child), quote=True)


def _attribute(key: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    if value is True:
        return f" {name}"
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return f' {name}="{escape(plain(text), quote=True)}"'
