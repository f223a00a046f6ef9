"""How much code each room of assay has, and how much of it three walks pass.

The table in ``AGENTS.md`` has a ceiling for each room: the lines that it had when the table was
written last. What is above one fails. ``--write`` lowers them; to raise one is an edit by hand, in
a commit that says what for, and what went in return.

Below the table stand the names of all modules, folder by folder, so that a reader finds a file by
what is in it; ``--write`` brings them up to date, and names that are not fail.

A line of code has something on it that runs or declares: no blank line, comment or docstring.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from pathlib import Path

from tools.walks import WALKS

_HOME = Path(__file__).parents[1]
_SOURCE = _HOME / "src" / "assay"
_LAWS = _HOME / "AGENTS.md"
_NO_CODE = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE),
    *(tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER),
}
_ROW = re.compile(
    r"^\| (?P<name>[^|]+) \| [\d,]+ \| (?P<most>[\d,]+) \| [\d,]+ \| (?P<goal>[^|]+) \|$",
    re.MULTILINE,
)

_FILES = re.compile(r"(?<=<!-- files -->\n).*(?=<!-- end of files -->)", re.DOTALL)

Sizes = dict[str, list[int]]


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


def sizes(source: Path, names: list[str]) -> Sizes:
    """Modules, lines and lines of code by a table's names: of one room, or of several with commas.

    A file counts for the longest path that it lies in; one beside the rooms for ``.``.

    Raises:
        LookupError: A room has no name in the table.
    """
    rooms = {room: name for name in names for room in name.replace("`", "").split(", ")}
    found: Sizes = {name: [0, 0, 0] for name in names}
    for path in source.rglob("*.py"):
        inside = path.relative_to(source).parent
        known = [one for one in (inside, *inside.parents) if one.as_posix() in rooms]
        if not known or (known[0] == Path() and inside != Path()):
            raise LookupError(f"{inside.as_posix()} is in no row of AGENTS.md")
        text = path.read_text("utf-8")
        more = (1, len(text.splitlines()), lines_of_code(text))
        name = rooms[known[0].as_posix()]
        found[name] = [a + b for a, b in zip(found[name], more, strict=True)]
    return found


def above(found: Sizes, laws: str) -> list[str]:
    """What is larger than its ceiling in the table, as sentences."""
    most = {row["name"]: int(row["most"].replace(",", "")) for row in _ROW.finditer(laws)}
    return [
        f"{name} has {size[1]:,} lines, and its ceiling in AGENTS.md is {most[name]:,}: "
        "make it smaller, or raise it by hand and say in the commit what went in return"
        for name, size in found.items()
        if size[1] > most[name]
    ]


def written(found: Sizes, laws: str) -> str:
    """The text with the table's figures as they are; no ceiling rises."""

    def row(match: re.Match[str]) -> str:
        modules, lines, code = found[match["name"]]
        lines = min(lines, int(match["most"].replace(",", "")))
        return f"| {match['name']} | {modules:,} | {lines:,} | {code:,} | {match['goal']} |"

    return _ROW.sub(row, laws)


def files(source: Path) -> str:
    """The modules of each folder by their names, a line a folder."""
    folders: dict[str, list[str]] = {}
    for path in sorted(source.rglob("*.py")):
        if path.stem != "__init__":
            folder = path.relative_to(source).parent.as_posix()
            folders.setdefault(folder, []).append(path.stem)
    return "".join(f"- `{folder}/`: {', '.join(names)}\n" for folder, names in folders.items())


def with_files(names: str, laws: str) -> str:
    """The text with these names of modules."""
    return _FILES.sub(lambda _: names, laws)


def table(found: Sizes) -> str:
    """The sizes as lines of text, and their sums."""
    whole = [sum(column) for column in zip(*found.values(), strict=True)]
    lines = [f"{'':<44}{'modules':>9}{'lines':>9}{'code':>9}"]
    for name, size in [*found.items(), ("all", whole)]:
        lines.append(f"{name.replace('`', ''):<44}" + "".join(f"{number:>9,}" for number in size))
    return "\n".join(lines)


def main() -> int:
    """Print the sizes and the walks; 1 if a room is above its ceiling or a file is not named."""
    laws = _LAWS.read_text("utf-8")
    found = sizes(_SOURCE, [row["name"] for row in _ROW.finditer(laws)])
    if "--write" in sys.argv[1:]:
        laws = with_files(files(_SOURCE), written(found, laws))
        _LAWS.write_text(laws, "utf-8")
    print(table(found))
    print(f"\n{'walk':<44}{'modules':>9}{'functions':>11}")
    for name in WALKS:
        command = [sys.executable, "-m", "tools.walks", name]
        told = subprocess.run(command, cwd=_HOME, capture_output=True, text=True, check=True)
        modules, functions = map(int, told.stdout.split()[-2:])
        print(f"{name:<44}{modules:>9,}{functions:>11,}")
    wrong = above(found, laws)
    if with_files(files(_SOURCE), laws) != laws:
        wrong.append("AGENTS.md names other files than there are: python -m tools.size --write")
    print("\n".join(wrong), file=sys.stderr, end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
