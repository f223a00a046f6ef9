"""How size is counted: what runs or declares is code, and nothing else."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from tools.size import above, files, lines_of_code, sizes, table, with_files, written
from tools.walks import walked

from assay.graders import exact_match

ROOT = Path(__file__).parents[1]
_MODULE = '''\
"""What the module
is for."""

import os  # why

LIMIT = """two
lines"""
"""What the limit is for."""


class Room:
    """A room."""

    def leave(self) -> None:
        """Leave."""
        # nothing
        os.close(
            0
        )
'''


def test_blank_lines_comments_and_what_documents_are_no_code() -> None:
    assert lines_of_code(_MODULE) == len(["import", "LIMIT", '"""', "class", "def", "(", "0", ")"])
    assert lines_of_code("") == lines_of_code('"""Only words."""\n# and more\n') == 0


_LAWS = """\
| room | modules | lines, at most | of code | goal |
|---|---|---|---|---|
| `large` | 1 | 20 | 1 | 10 |
| `small`, `.` | 9 | 900 | 9 | 800 |
"""


def test_each_row_is_counted_and_none_may_grow(tmp_path: Path) -> None:
    for name in ("top.py", "small/__init__.py", "large/a.py", "large/inside/b.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("" if "__init__" in name else _MODULE, "utf-8")
    lines = len(_MODULE.splitlines())
    found = sizes(tmp_path, ["`large`", "`small`, `.`"])
    assert found == {"`large`": [2, 2 * lines, 16], "`small`, `.`": [2, lines, 8]}
    printed = [line.split() for line in table(found).splitlines()]
    assert printed[-1] == ["all", "4", str(3 * lines), "24"]
    assert [one.partition(" has ")[0] for one in above(found, _LAWS)] == ["`large`"]
    laws = written(found, _LAWS)
    assert "| `large` | 2 | 20 | 16 | 10 |" in laws
    assert f"| `small`, `.` | 2 | {lines} | 8 | 800 |" in laws


def test_a_file_counts_for_the_longest_path_and_a_room_without_one_is_named(tmp_path: Path) -> None:
    (tmp_path / "large" / "inside").mkdir(parents=True)
    (tmp_path / "large" / "inside" / "b.py").write_text("A = 1\n")
    assert sizes(tmp_path, ["`large`", "`large/inside`"]) == {
        "`large`": [0, 0, 0],
        "`large/inside`": [1, 1, 1],
    }
    with pytest.raises(LookupError, match="large/inside"):
        sizes(tmp_path, ["`.`"])


def test_a_walk_counts_what_runs_of_assay_and_no_loading() -> None:
    def act() -> None:
        assert exact_match("4", "4") == 1.0

    modules, functions = walked(act)
    assert 1 <= modules <= functions < 30


def test_a_public_class_name_stands_once() -> None:
    """But for `Grade`, which is hud's name in `assay.native`, and two of the REST document."""
    texts = {path: path.read_text("utf-8") for path in (ROOT / "src").rglob("*.py")}
    begins = re.compile(r"^class ([A-Za-z]\w*)", re.MULTILINE)
    lines = {path: begins.findall(text) for path, text in texts.items()}
    seen = Counter(name for names in lines.values() for name in names)
    places = defaultdict[str, list[str]](list)
    for path, names in lines.items():
        if all(seen[name] == 1 for name in names):
            continue  # to parse every file takes seconds; a line may stand in a text
        for node in ast.parse(texts[path]).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(path.relative_to(ROOT).as_posix())
    twice = {name: where for name, where in places.items() if len(where) > 1}
    assert twice.keys() == {"Grade", "Row", "Message"}, twice


def test_the_files_are_named_folder_by_folder(tmp_path: Path) -> None:
    for name in ("one/b.py", "one/a.py", "one/__init__.py", "c.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    names = files(tmp_path)
    assert names == "- `./`: c\n- `one/`: a, b\n"
    laws = "before\n<!-- files -->\n- old\n<!-- end of files -->\nafter\n"
    assert with_files(names, laws) == laws.replace("- old\n", names)
