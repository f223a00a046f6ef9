"""Print how much code each room of assay has: modules, lines, and lines of code.

A line of code has something on it that runs or declares: no blank line, comment or docstring.
"""

from __future__ import annotations

import ast
import io
import tokenize
from pathlib import Path

_SOURCE = Path(__file__).parents[1] / "src" / "assay"
_NO_CODE = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE),
    *(tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER),
}


def lines_of_code(text: str) -> int:
    """How many lines of a module are code; a text that stands by itself documents."""
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NO_CODE:
            code.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        said = node.value if isinstance(node, ast.Expr) else None
        if isinstance(said, ast.Constant) and isinstance(said.value, str):
            code.difference_update(range(said.lineno, (said.end_lineno or said.lineno) + 1))
    return len(code)


def sizes(source: Path) -> dict[str, list[int]]:
    """Modules, lines and lines of code of each room; modules beside the rooms are one, ``.``."""
    found: dict[str, list[int]] = {}
    for path in source.rglob("*.py"):
        text = path.read_text("utf-8")
        room = path.relative_to(source).parts[0] if path.parent != source else "."
        before = found.get(room, [0, 0, 0])
        more = (1, len(text.splitlines()), lines_of_code(text))
        found[room] = [a + b for a, b in zip(before, more, strict=True)]
    return dict(sorted(found.items(), key=lambda row: -row[1][2]))


def table(found: dict[str, list[int]]) -> str:
    """The sizes of all rooms as lines of text, the largest first, and their sums."""
    whole = [sum(column) for column in zip(*found.values(), strict=True)]
    lines = [f"{'room':<12}{'modules':>9}{'lines':>9}{'code':>9}"]
    for room, size in [*found.items(), ("all", whole)]:
        lines.append(f"{room:<12}" + "".join(f"{number:>9,}" for number in size))
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(sizes(_SOURCE)))
