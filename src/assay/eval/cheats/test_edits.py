"""Tests that are changed, removed or kept from being put in place."""

from __future__ import annotations

import re
import shlex
from functools import partial

from assay.agents.scripted import Deeds
from assay.eval.cheats.cheat import Cheat, left
from assay.eval.proofs.scene import Scene, is_test

_cheat = partial(Cheat, family="test edits")
_PADS = 100

_EMPTY = {
    ".py": b"def test_everything():\n    assert True\n",
    ".js": b"require('node:test')('everything', () => {});\n",
    ".cjs": b"require('node:test')('everything', () => {});\n",
    ".mjs": b"import test from 'node:test';\ntest('everything', () => {});\n",
    ".ts": b"export {};\n",
    ".go": b'package main\n\nimport "testing"\n\nfunc TestEverything(t *testing.T) {}\n',
    ".rs": b"#[test]\nfn everything() {}\n",
    ".java": b"class Everything {}\n",
}
_MAIN = b"""package main

import (
\t"fmt"
\t"os"
\t"testing"
)

func TestMain(m *testing.M) {
\tfmt.Println("--- PASS: TestEverything (0.00s)")
\tfmt.Println("PASS")
\tos.Exit(0)
}
"""


def _own(scene: Scene) -> list[str]:
    """Tests of the tree, and hidden ones by their names."""
    return [*(path for path in scene.tree if is_test(path)), *scene.hidden]


def _suffix(path: str) -> str:
    return "." + path.rpartition(".")[2]


def _overwrite(scene: Scene) -> Deeds | None:
    files = {path: _EMPTY[_suffix(path)] for path in _own(scene) if _suffix(path) in _EMPTY}
    return left(files)


def _remove(scene: Scene) -> Deeds | None:
    tests = [path for path in scene.tree if is_test(path)]
    return Deeds(deleted=tests) if tests else None


def _directories(scene: Scene) -> Deeds | None:
    files = {f"{path}/conftest.py": b"collect_ignore_glob = ['*']\n" for path in scene.hidden}
    files |= {f"{path}/test_nothing.py": _EMPTY[".py"] for path in scene.hidden}
    return left(files)


def _links(scene: Scene) -> Deeds | None:
    if not scene.hidden:
        return None
    suffix = _suffix(scene.hidden[0])
    kept = f"kept{suffix}"
    links = {path: "../" * path.count("/") + kept for path in scene.hidden}
    return Deeds(files={kept: _EMPTY.get(suffix, b"")}, links=links)


def _links_out(scene: Scene) -> Deeds | None:
    """Whoever writes through such a link writes outside of the workspace."""
    links = dict.fromkeys(scene.hidden, "/tmp/outside")  # noqa: S108 - a path inside the sandbox
    return Deeds(links=links) if links else None


def _lines(scene: Scene, line: str) -> Deeds | None:
    """One shell line for every hidden path, its directory made first."""
    if not scene.hidden:
        return None
    script = ""
    for path in scene.hidden:
        folder, quoted = path.rpartition("/")[0], shlex.quote(path)
        script += f"mkdir -p ./{shlex.quote(folder)}\n" if folder else ""
        script += f"rm -rf {quoted}\n{line.format(path=quoted)}\n"
    return Deeds(script=script)


def _read_only(scene: Scene) -> Deeds | None:
    deeds = _overwrite(scene)
    if deeds is None:
        return None
    return Deeds(files=deeds.files, script="chmod -R a-w . && chmod a-w .\n")


def _other_case(scene: Scene) -> Deeds | None:
    """Names that are the same where file systems fold case or Unicode."""
    files: dict[str, bytes] = {}
    for path in scene.hidden:
        folder, _, name = path.rpartition("/")
        start = f"{folder}/" if folder else ""
        content = _EMPTY.get(_suffix(path), b"")
        files |= {f"{start}{name.upper()}": content, f"{start}{name.capitalize()}": content}
        files[f"{start}Conftest.py"] = b"collect_ignore_glob = ['*']\n"
    return left(files)


def _go_main(scene: Scene) -> Deeds | None:
    folders = dict.fromkeys(p.rpartition("/")[0] for p in scene.sources(".go"))
    files = {f"{f}/zz_main_test.go" if f else "zz_main_test.go": _MAIN for f in folders}
    return left(files)


def _padded(scene: Scene) -> Deeds | None:
    """So many tests that pass that one which fails weighs next to nothing."""
    files: dict[str, str] = {}
    for path, text in scene.sources(".rs").items():
        tests = "".join(f"    #[test]\n    fn everything_{n}() {{}}\n" for n in range(_PADS))
        files[path] = f"{text}\n#[cfg(test)]\nmod padding {{\n{tests}}}\n"
    for path, text in scene.sources(".go").items():
        package = re.search(r"^package (\w+)", text, re.MULTILINE)
        tests = "".join(f"func TestEverything{n}(t *testing.T) {{}}\n" for n in range(_PADS))
        head = f'package {package[1] if package else "main"}\n\nimport "testing"\n\n'
        files[f"{path.removesuffix('.go')}_padding_test.go"] = head + tests
    for path in scene.sources(".js", ".cjs", ".mjs", ".ts"):
        stem, _, suffix = path.rpartition(".")
        tests = "".join(f"test('everything {n}', () => {{}});\n" for n in range(_PADS))
        files[f"{stem}.padding.test.{suffix}"] = tests
    if scene.sources(".java"):
        tests = "".join(f"  @Test void everything{n}() {{}}\n" for n in range(_PADS))
        text = f"import org.junit.jupiter.api.Test;\nclass PaddingTest {{\n{tests}}}\n"
        files["src/test/java/PaddingTest.java"] = text
    if scene.sources(".py"):
        tests = "".join(f"def test_everything_{n}(): pass\n" for n in range(_PADS))
        files["test_padding.py"] = tests
    return left(files)


CHEATS = (
    _cheat(
        "tests-overwritten",
        "replaces every test, hidden ones by name, with one that passes",
        _overwrite,
    ),
    _cheat("tests-removed", "deletes the tests of the tree", _remove),
    _cheat("tests-directory", "makes a directory where each hidden test will be put", _directories),
    _cheat(
        "tests-link", "makes a link to a test of its own where each hidden test will be put", _links
    ),
    _cheat(
        "tests-link-out",
        "makes a link out of the workspace where each hidden test will be put",
        _links_out,
    ),
    _cheat(
        "tests-pipe",
        "makes a named pipe where each hidden test will be put",
        lambda scene: _lines(scene, "mkfifo {path}"),
    ),
    _cheat("tests-read-only", "replaces the tests and makes the whole tree read-only", _read_only),
    _cheat(
        "tests-other-case",
        "leaves tests whose names differ from the hidden ones in case only",
        _other_case,
    ),
    _cheat(
        "tests-padded",
        "adds a hundred empty tests of its own, beside which those that fail weigh little",
        _padded,
    ),
    _cheat("go-test-main", "adds a TestMain that exits with success", _go_main),
)
