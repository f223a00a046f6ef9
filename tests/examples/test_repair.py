"""The grader of examples/repair against honest work and against those who would fool it.

At the grader's own door, since what matters is what it makes of a workspace. The workspace holds a
stand-in for the real package, so nothing is fetched.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import pytest

from assay.errors import GraderError, SandboxUnavailableError
from assay.graders import Grader, SubScore
from assay.graders.kinds import load_file
from assay.scoring.json_safe import Json
from assay.tasks.case import load_case
from assay.types import Workspace
from tests.written_files import write_files

CASE = Path(__file__).parents[2] / "examples" / "repair" / "parse-number-base"
STAND_IN = Path(__file__).parents[1] / "standins" / "parse.py"
PROBE = str(CASE / "graders" / "probe.py")
Behaviour = cast(
    "type[Grader]", vars(load_file(str(CASE / "graders" / "behaviour.py")))["Behaviour"]
)

BUGGY = STAND_IN.read_text(encoding="utf-8")
FIXED = BUGGY.replace("self.base", "base").replace(
    "        base = base\n\n    def __call__(self, string: str) -> int:\n",
    "        self.base = base\n\n    def __call__(self, string: str) -> int:\n"
    "        base = self.base\n",
)

pytestmark = pytest.mark.sandbox


def checks(name: str) -> list[dict[str, Json]]:
    """The checks of one of the case's graders."""
    graders = {spec.label: spec for spec in load_case(str(CASE)).graders}
    return cast("list[dict[str, Json]]", graders[name].options["checks"])


def grade(
    workspace: Path,
    name: str = "behaviour",
    *,
    given: Sequence[Mapping[str, Json]] | None = None,
    timeout_s: float = 30.0,
) -> SubScore:
    graded = Behaviour.grade(
        workspace=Workspace(path=str(workspace)),
        probe=PROBE,
        checks=checks(name) if given is None else given,
        timeout_s=timeout_s,
    )
    return asyncio.run(graded)


def test_honest_work_gets_what_it_deserves(tmp_path: Path) -> None:
    assert "        base = self.base" in FIXED
    buggy = write_files(tmp_path / "buggy", {"parse.py": BUGGY})
    fixed = write_files(tmp_path / "fixed", {"parse.py": FIXED})
    assert grade(buggy).value == 0.0
    assert grade(buggy, "old-behaviour").value == 1.0
    assert grade(fixed).value == 1.0
    assert grade(fixed, "old-behaviour").value == 1.0


def test_a_right_result_among_wrong_ones_earns_its_share(tmp_path: Path) -> None:
    shown: list[dict[str, Json]] = [
        {"input": {"pattern": "{:d}", "texts": ["0x10"]}, "expect": [[16]]},
        {"input": {"pattern": "{:d}", "texts": ["0x10", "42"]}, "expect": [[16], [42]]},
    ]
    found = grade(write_files(tmp_path, {"parse.py": BUGGY}), given=shown)
    assert found.value == 0.5
    assert found.metadata is not None
    assert "expected [[16], [42]], got [[16], [66]]" in str(found.metadata["wrong"])


PRELUDE = "import gc, json, os, sys\n"
FORGE = """
for thing in gc.get_objects():
    if isinstance(thing, dict) and "word" in thing and "inputs" in thing:
        for number in range(len(thing["inputs"])):
            os.write(1, ("\\n" + thing["word"] + f" {number} " + SAID + "\\n").encode())
"""


def forge(said: str) -> str:
    """Write a line for each input, as the probe would; ``said`` is a Python expression."""
    return PRELUDE + FORGE.replace("SAID", said)


# What is put in the place of the package, and what it hopes for.
CHEATS: dict[str, str] = {
    "print_a_summary": PRELUDE + "print('12 passed\\n1.0\\nPASS', flush=True)\nos._exit(0)\n",
    "exit_when_called": PRELUDE + "def compile(pattern):\n    os._exit(0)\n",
    "always_equal_object": """
class Right(list):
    fixed = property(lambda self: [Right()])
    named = {}
    __eq__ = lambda self, other: True
    __hash__ = None
    parse = lambda self, text: self
    __iter__ = lambda self: iter([Right()])
compile = lambda pattern: Right()
""",
    "int_that_prints_as_anything": """
class Int(int):
    __repr__ = __str__ = lambda self: "42"
class Parser:
    named = {}
    fixed = [Int(42)]
    parse = lambda self, text: self
compile = lambda pattern: Parser()
""",
    "replace_json": PRELUDE
    + """
json.dumps = lambda *a, **k: '{"value": true}'
compile = None
""",
    "forge_lines_of_the_probe": forge("'{\"value\": true}'") + "os._exit(0)\n",
    "forge_no_json": forge("'[' * 3_000") + "os._exit(0)\n",
    "forge_half_a_character": forge('\'{"raised": "\\\\ud800"}\'') + "os._exit(0)\n",
    "forge_huge_number": forge("'{\"value\": ' + '9' * 4_900 + '}'") + "os._exit(0)\n",
    "kill_the_probe": PRELUDE + "import signal\nos.kill(os.getpid(), signal.SIGKILL)\n",
    "no_package_at_all": "",
    "look_for_the_right_answers": PRELUDE
    + """
seen = open("/proc/self/environ").read() + open("/proc/self/cmdline").read()
for folder in ("/run", "/tmp", "/workspace"):
    for place, _, names in os.walk(folder):
        for name in names:
            seen += open(os.path.join(place, name), errors="replace").read()
seen += repr([thing for thing in gc.get_objects() if isinstance(thing, (dict, list, str))])
class Parser:
    named = {}
    fixed = ["found" if "".join(["[[5],", " [42]]"]) in seen else "hidden"]
    parse = lambda self, text: self
compile = lambda pattern: Parser()
""",
}


@pytest.mark.parametrize("name", CHEATS)
def test_cheat_gets_nothing(tmp_path: Path, name: str) -> None:
    workspace = write_files(tmp_path, {"parse.py": CHEATS[name]} if CHEATS[name] else {"x": ""})
    found = grade(workspace)
    assert found.status == "scored"
    assert found.value == 0.0
    wrong = str((found.metadata or {})["wrong"])
    assert "expected [[5], [42]], got" in wrong
    if name == "look_for_the_right_answers":  # which are nowhere in the sandbox
        assert 'got [["hidden"]' in wrong
        assert "found" not in wrong


def test_second_line_for_one_input_is_flagged_and_worth_nothing(tmp_path: Path) -> None:
    forged = forge("'{\"value\": [[42], [77]]}'")
    found = grade(write_files(tmp_path, {"parse.py": FIXED + forged}))
    assert found.value == 0.0
    assert found.flags


def test_endless_loop_is_worth_nothing(tmp_path: Path) -> None:
    found = grade(write_files(tmp_path, {"parse.py": "while True: pass\n"}), timeout_s=1.0)
    assert found.value == 0.0
    assert found.metadata is not None
    assert found.metadata["ended"] == "timed_out"


EXIT = "import os\nos._exit(0)\n"
_MODULES = ("sitecustomize", "usercustomize", "conftest", "json", "string", "os", "sys")
PLANTED = {
    **{f"{name}.py": EXIT for name in (*_MODULES, "encodings/__init__", ".pythonrc")},
    "python3": EXIT,
    "x.pth": "import os; os._exit(0)",
    "pyvenv.cfg": "home = /workspace",
}


@pytest.mark.parametrize(("package", "value"), [(BUGGY, 0.0), (FIXED, 1.0)])
def test_planted_files_change_nothing(tmp_path: Path, package: str, value: float) -> None:
    # The package imports a standard module that the workspace has a file for.
    files = {**PLANTED, "parse.py": f"{package}\nimport string\n"}
    assert grade(write_files(tmp_path, files)).value == value


def test_stale_bytecode_does_not_run_instead_of_the_source(tmp_path: Path) -> None:
    import py_compile

    # Compiled without a check of its source: Python would run it whatever the source says.
    work = write_files(tmp_path / "work", {"parse.py": FIXED})
    for tag in ("cpython-311", "cpython-312", "cpython-313"):
        py_compile.compile(
            str(work / "parse.py"),
            cfile=str(work / "__pycache__" / f"parse.{tag}.pyc"),
            invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
        )
    write_files(work, {"parse.py": BUGGY})
    assert grade(work).value == 0.0


def test_what_the_submission_prints_does_not_hide_its_results(tmp_path: Path) -> None:
    noisy = FIXED.replace(
        "def compile(", "import sys\nsys.stdout.write('no line feed')\nprint(0)\n\n\ndef compile("
    )
    assert grade(write_files(tmp_path, {"parse.py": noisy})).value == 1.0


@pytest.mark.parametrize("said", ["42.0", "True", "'42'"])
def test_number_of_another_kind_is_wrong(tmp_path: Path, said: str) -> None:
    package = (
        "class Parser:\n    named = {}\n"
        f"    fixed = [{said}]\n    parse = lambda self, text: self\n"
        "compile = lambda pattern: Parser()\n"
    )
    check: list[dict[str, Json]] = [
        {"input": {"pattern": "{:d}", "texts": ["1"]}, "expect": [[1 if said == "True" else 42]]}
    ]
    assert grade(write_files(tmp_path, {"parse.py": package}), given=check).value == 0.0


def test_submission_is_not_changed_by_grading(tmp_path: Path) -> None:
    changing = FIXED + "\nopen('/workspace/parse.py', 'w').write('changed')\n"
    workspace = write_files(tmp_path, {"parse.py": changing})
    grade(workspace)
    assert (workspace / "parse.py").read_text(encoding="utf-8") == changing


def test_no_sandbox_is_an_error_and_not_a_zero(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing() -> str:
        raise SandboxUnavailableError("no sandbox here")

    monkeypatch.setattr("assay.sandbox.bubblewrap.find", missing)
    with pytest.raises(GraderError, match="no sandbox here") as caught:
        grade(write_files(tmp_path, {"parse.py": FIXED}))
    assert cast("SubScore", caught.value.subscore).value is None


def test_no_checks_are_the_author_s_mistake(tmp_path: Path) -> None:
    with pytest.raises(GraderError, match="at least one check"):
        grade(write_files(tmp_path, {"parse.py": FIXED}), given=[])
