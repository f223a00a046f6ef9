"""Read one file for signs; runs in the process that reads sources."""

from __future__ import annotations

from assay.graders.signs.sign import Sign

__all__ = ["read_signs"]

_MOST = 200


def read_signs(
    source: bytes, path: str, language: str, own: frozenset[str]
) -> tuple[list[Sign], list[str]] | str:
    """The signs of a file, each place once, and its idle texts; as text, why it cannot be read.

    A file that does not parse has none: it does nothing.

    Args:
        source: Its bytes.
        path: From the root of the workspace.
        language: As `assay.graders.languages.language_of` calls it.
        own: First parts of the names of the workspace's own modules.
    """
    try:
        if language != "python":
            from assay.graders.signs.other import other_signs

            return other_signs(source, path, language)[:_MOST], []
        from assay.graders.signs.python import python_module, reached
        from assay.graders.signs.python_lies import idle_texts, told

        module = python_module(source, path, own)
        if isinstance(module, str):
            return module or ([], [])
        hits = [*reached(module), *told(module)]
        found = {Sign(getattr(node, "lineno", 1), name, what[:120]) for name, node, what in hits}
        return sorted(found)[:_MOST], idle_texts(module)
    except RecursionError:
        return "is nested too deeply"
