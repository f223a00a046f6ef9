"""How size is counted: what runs or declares is code, and nothing else."""

from __future__ import annotations

from pathlib import Path

from tools.size import lines_of_code, sizes, table

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


def test_each_room_has_a_line_and_all_of_them_a_sum(tmp_path: Path) -> None:
    for name in ("top.py", "small/__init__.py", "large/a.py", "large/inside/b.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("" if "__init__" in name else _MODULE, "utf-8")
    found = sizes(tmp_path)
    lines = len(_MODULE.splitlines())
    assert found == {"large": [2, 2 * lines, 16], ".": [1, lines, 8], "small": [1, 0, 0]}
    printed = [line.split() for line in table(found).splitlines()]
    assert printed[1] == ["large", "2", str(2 * lines), "16"]
    assert printed[-1] == ["all", "4", str(3 * lines), "24"]
