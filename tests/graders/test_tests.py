"""The kinds `tests` and `pytest`, through the sandbox: honest work is paid, cheats are not."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from assay.errors import GraderError, InputError
from assay.graders.testing import runners
from assay.graders.testing.hidden import hidden_files, lay_out, read_inject
from assay.graders.testing.reports import check_globs, read_packed, wrapped
from assay.graders.tests import PytestGrader, TestsGrader, _with_lines
from assay.sandbox import Mount, run_command
from assay.scoring import Json, SubScore
from assay.types import Workspace
from tests.each import each
from tests.written_files import write_files

pytestmark = pytest.mark.sandbox

HIDDEN = """\
from kit import add, double


def test_add():
    assert add(2, 3) == 5


def test_double():
    assert double(4) == 8
"""


def skipping(condition: str) -> str:
    """The hidden test, with its second half skipped under a condition."""
    mark = f"@pytest.mark.skipif({condition}, reason='')\ndef test_double"
    return "import sys\nimport pytest\n" + HIDDEN.replace("def test_double", mark)


HONEST = "def add(a, b):\n    return a + b\n\n\ndef double(n):\n    return 2 * n\n"
HALF = HONEST.replace("2 * n", "n")


VARIANTS = """\
import sys
import pytest
from kit import double

slow = pytest.mark.skip(reason="slow")
CASES = [pytest.param(1, 9, marks=slow), (2, 4), pytest.param(3, 6, id="three")]


@pytest.mark.parametrize(("n", "twice"), CASES)
def test_named(n, twice):
    assert double(n) == twice


@pytest.mark.parametrize("n", [pytest.param(1, marks=pytest.mark.xfail), 2])
def test_failing(n):
    assert double(n) == 4


@pytest.mark.parametrize("m", [1, 2])
@pytest.mark.parametrize(
    "n", [pytest.param(5, marks=[pytest.mark.skipif(sys.version_info >= (3, 8), reason="x")]), 3]
)
def test_product(n, m):
    assert double(n) * m == 6 * m


@pytest.mark.parametrize("n", [])
def test_empty(n):
    assert double(n) == 1


class TestMore:
    @pytest.mark.parametrize(
        "n",
        [4, pytest.param(7, marks=pytest.mark.skipif("sys.platform == 'win32'", reason="x"))],
    )
    def test_method(self, n):
        assert double(n) == 2 * n
"""

DOCTESTS = """\
'''
>>> from kit import add
>>> add(2, 3)
5
'''


class Doubled:
    '''
    >>> 1 + 1
    2
    '''

    def method(self):
        '''
        >>> from kit import double
        >>> double(4)
        8
        '''

    def left_out(self):
        '''
        >>> double(0)  # doctest: +SKIP
        1
        '''
"""

SPAWNING = """\
import inspect
import multiprocessing


def square(n):
    return n * n


def test_spawn():
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(square, [2, 3]) == [4, 9]


def test_source():
    assert "n * n" in inspect.getsource(square)
"""

MATCHING = """\
from kit import Whole


def test_whole():
    assert Whole() == 3
"""


class Case:
    """A case on disk: a source, a hidden test, and the tree of a submission."""

    def __init__(self, root: Path) -> None:
        self.source = root / "source"
        self.tree = root / "tree"
        self.hidden = root / "hidden"
        for directory in (self.source, self.tree, self.hidden):
            directory.mkdir()
        self.changes: list[str] = []
        self.hide("test_hidden.py", HIDDEN)

    def given(self, name: str, text: str) -> None:
        """A file that the agent is given."""
        write_files(self.source, {name: text})
        write_files(self.tree, {name: text})

    def submit(self, name: str, text: str) -> None:
        """A file that the agent leaves."""
        write_files(self.tree, {name: text})
        self.changes.append(name)

    def hide(self, name: str, text: str) -> str:
        """A hidden file; returns its path."""
        return str(write_files(self.hidden, {name: text}) / name)

    async def grade(self, kind: type[TestsGrader] = PytestGrader, **options: object) -> SubScore:
        """Grade the tree."""
        workspace = Workspace(
            path=str(self.tree), source=str(self.source), changes=tuple(self.changes)
        )
        options.setdefault("inject", [str(self.hidden / "test_hidden.py")])
        return await kind.grade(workspace=workspace, **cast("dict[str, Any]", options))


@pytest.fixture
def case(tmp_path: Path) -> Case:
    """One whose submission is right, until another is submitted."""
    made = Case(tmp_path)
    made.submit("kit.py", HONEST)
    return made


def evidence(node: SubScore) -> dict[str, Json]:
    return dict(node.metadata or {})


def outcomes(node: SubScore) -> dict[str, Json]:
    tests = evidence(node)["tests"]
    assert isinstance(tests, list)
    entries = [entry for entry in tests if isinstance(entry, dict)]
    return {str(entry["id"]).rpartition("::")[2]: entry["outcome"] for entry in entries}


class TestOptions:
    """What a declaration is refused for, before anything runs."""

    @each(
        ("kind", "options", "words"),
        [
            (TestsGrader, {}, "cmd"),
            (TestsGrader, {"cmd": "mvn test", "junit_xml": "../*.xml"}, "junit_xml"),
            (TestsGrader, {"cmd": "python3 run_tests.py"}, "junit_xml"),
            (TestsGrader, {"cmd": "pytest a && pytest b"}, "2 test runners"),
            (TestsGrader, {"cmd": "pytest 'a"}, "shell line"),
            (TestsGrader, {"cmd": "cargo test", "format": "guess"}, "guess"),
            (PytestGrader, {"inject": [{"src": "/a.py", "dest": "../a.py"}]}, "dest"),
            (PytestGrader, {"inject": [{"src": "/a.py", "dest": "/etc/a.py"}]}, "dest"),
            (PytestGrader, {"inject": [{"src": "/a.py", "dest": "-rf"}]}, "dest"),
            (PytestGrader, {"inject": [{"src": "/a.py", "dest": ""}]}, "dest"),
            (PytestGrader, {"inject": [{"src": "/a.py", "on_disk": "yes"}]}, "cannot be injected"),
        ],
    )
    def test_what_makes_no_sense_is_refused(
        self, kind: type[TestsGrader], options: dict[str, Json], words: str
    ) -> None:
        with pytest.raises(InputError) as error:
            kind.check_options(options)
        assert words in str(error.value)


class TestHiddenFiles:
    """How hidden files are laid out."""

    def test_destinations(self, tmp_path: Path) -> None:
        names = ("a.py", "data/b.txt", "data/sub/c.txt", "data/__pycache__/x.pyc")
        write_files(tmp_path, dict.fromkeys(names, "x"))
        entries: list[Json] = [
            f"{tmp_path}/a.py",
            {"src": f"{tmp_path}/a.py", "dest": "tests/unit/a.py"},
            {"src": f"{tmp_path}/a.py", "dest": "tests/"},
            {"src": f"{tmp_path}/data", "dest": "./fixtures/"},
        ]
        places = hidden_files(read_inject(entries))
        assert sorted(places) == [
            "a.py",
            "fixtures/b.txt",
            "fixtures/sub/c.txt",
            "tests/a.py",
            "tests/unit/a.py",
        ]

    def test_a_layer_has_plain_modes_and_goes_away(self, tmp_path: Path) -> None:
        for name, mode in (("test_a.py", 0o600), ("tool", 0o4755)):
            (tmp_path / name).write_text("x = 1\n", encoding="utf-8")
            (tmp_path / name).chmod(mode)
        files = {"sub/test_a.py": f"{tmp_path}/test_a.py", "tool": f"{tmp_path}/tool"}
        with lay_out(files, told=["sub/test_a.py"]) as layer:
            root = Path(layer)
            assert (root / "sub/test_a.py").read_bytes() == b""
            assert (root / "tool").read_text() == "x = 1\n"
            assert [p.stat().st_mode & 0o7777 for p in (root, root / "sub")] == [0o755, 0o755]
            assert (root / "sub/test_a.py").stat().st_mode & 0o7777 == 0o644
            assert (root / "tool").stat().st_mode & 0o7777 == 0o755
        assert not root.exists()

    def test_a_hidden_link_stays_in_its_directory(self, tmp_path: Path) -> None:
        write_files(tmp_path, {"data/a": "a"})
        (tmp_path / "data" / "b").symlink_to("a")
        places = hidden_files(read_inject([str(tmp_path / "data")]))
        assert sorted(places) == ["data/a", "data/b"]
        for target in ("/etc/passwd", "..", "."):
            (tmp_path / "data" / "c").unlink(missing_ok=True)
            (tmp_path / "data" / "c").symlink_to(target)
            with pytest.raises(GraderError, match="leads out"):
                hidden_files(read_inject([str(tmp_path / "data")]))

    def test_files_in_each_others_way_are_the_authors_mistake(self, tmp_path: Path) -> None:
        write_files(tmp_path, {"a": "a", "b": "b"})
        entries: list[Json] = [{"src": str(tmp_path / name), "dest": "x"} for name in "ab"]
        with pytest.raises(GraderError, match="two hidden files"):
            hidden_files(read_inject(entries))
        files = {"x": str(tmp_path / "a"), "x/y": str(tmp_path / "b")}
        with pytest.raises(GraderError, match="laid out"), lay_out(files):
            pass
        with pytest.raises(GraderError, match="gone"):
            hidden_files(read_inject([str(tmp_path / "none")]))

    def test_files_that_vanish_while_the_tests_run_are_nobodys_zero(self, tmp_path: Path) -> None:
        (tmp_path / "test_a.py").write_text("def test_a(): pass\n")
        places = {"test_a.py": str(tmp_path / "test_a.py")}
        with pytest.raises(GraderError, match="were removed from"), lay_out(places) as layer:
            Path(layer, "test_a.py").unlink()


class TestReports:
    """Getting report files out of a sandbox."""

    async def pack(self, line: str, globs: list[str], tmp_path: Path) -> dict[str, bytes]:
        tree, packed = tmp_path / "tree", tmp_path / "packed"
        tree.mkdir(exist_ok=True)
        packed.touch()
        mount = Mount(source=str(packed), target="/opt/assay/reports", writable=True)
        result = await run_command(wrapped(line, globs), workspace=str(tree), mounts=[mount])
        assert result.exit_code == 3
        return read_packed(str(packed))

    async def test_only_matching_files_of_this_run_come_out(self, tmp_path: Path) -> None:
        write_files(tmp_path, {"tree/out/old.xml": "old"})
        (tmp_path / "tree/out/link.xml").symlink_to("/etc/passwd")
        line = (
            "mkdir -p out/a/b; echo 1 > out/1.xml; echo 2 > out/a/b/2.xml; echo 3 > out/3.txt; "
            "ln -s /etc/passwd out/4.xml; echo 5 > 'out/5 +$[x].xml'; echo 6 > other.xml; exit 3"
        )
        found = await self.pack(line, ["out/**/*.xml"], tmp_path)
        assert found == {"out/1.xml": b"1\n", "out/a/b/2.xml": b"2\n", "out/5 +$[x].xml": b"5\n"}
        found = await self.pack(line, ["out/?.xml", "/workspace/oth[a-f]r.xml"], tmp_path)
        assert found == {"out/1.xml": b"1\n", "other.xml": b"6\n"}
        found = await self.pack(line, ["out/5 +$[[]*.xml"], tmp_path)
        assert list(found) == ["out/5 +$[x].xml"]

    async def test_floods_are_cut(self, tmp_path: Path) -> None:
        line = "for n in $(seq 150); do echo $n > $n.xml; done; truncate -s 100M big.xml; exit 3"
        found = await self.pack(line, ["*.xml"], tmp_path)
        assert len(found) <= 100
        assert "big.xml" not in found

    async def test_a_process_left_running_writes_no_report(self, tmp_path: Path) -> None:
        line = "(while :; do echo forged > r.xml; done) & sleep 0.1; rm -f r.xml; exit 3"
        loop = await self.pack(f"setsid sh -c '{line}'; exit 3", ["never.xml"], tmp_path)
        assert loop == {}

    @each("glob", ["", "../a.xml", "/etc/*.xml", "a/../../b.xml", "**/" * 4])
    def test_globs_stay_inside(self, glob: str) -> None:
        with pytest.raises(InputError, match="junit_xml"):
            check_globs([glob])

    @each("content", [b"", b"no archive", b"\0" * 10_240])
    def test_what_is_no_archive_holds_nothing(self, content: bytes, tmp_path: Path) -> None:
        (tmp_path / "packed").write_bytes(content)
        assert read_packed(str(tmp_path / "packed")) == {}


class TestPytest:
    """Cases with pytest."""

    async def test_an_interpreter_may_be_started_by_a_way_through_other_directories(
        self, case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """`../../.venv/bin/python -m assay run` found no Python in the sandbox."""
        way = tmp_path / os.path.relpath(sys.executable, tmp_path)
        monkeypatch.setattr(sys, "executable", str(way))
        assert (await case.grade()).value == 1.0

    async def test_honest_work_is_paid_and_grading_changes_nothing_on_disk(
        self, case: Case
    ) -> None:
        node = await case.grade()
        assert (node.value, node.passed, node.flags) == (1.0, True, ())
        kept = evidence(node)
        assert kept["counts"] == {"expected": 2, "passed": 2}
        assert (kept["channel"], kept["sandbox"]) == ("private", "bwrap")
        assert node.assurance == "shared"
        assert "notes" not in kept
        assert [path.name for path in case.tree.iterdir()] == ["kit.py"]

    async def test_half_of_it_is_half_paid_and_a_shuffled_order_is_told(self, case: Case) -> None:
        case.submit("kit.py", HALF)
        node = await case.grade(pass_threshold=0.5)
        assert (node.value, node.passed) == (0.5, True)
        assert outcomes(node) == {"test_add": "passed", "test_double": "failed"}
        assert "order shuffled (seed " in str(evidence(node)["notes"])
        node = await case.grade(gate=True, shuffle=False)
        assert (node.passed, node.gate) == (False, True)
        assert "notes" not in evidence(node)
        # A test that ends the process fails alone.
        case.submit("kit.py", f"import os\n{HONEST.replace('2 * n', 'os._exit(0)')}")
        assert outcomes(await case.grade()) == {"test_add": "passed", "test_double": "failed"}

    async def test_other_ways_to_start_it(self, case: Case) -> None:
        rule = "check:\n\t@$(PYTHON) -m pytest -q test_hidden.py\nPYTHON = python3\n"
        case.given("Makefile", rule)
        for cmd in ("python -W error -m pytest -q", "cd . && py.test -q", "make check"):
            node = await case.grade(TestsGrader, cmd=cmd)
            assert node.value == 1.0, evidence(node)

    async def test_given_ids_are_all_that_counts_and_stand_in_their_file(self, case: Case) -> None:
        ids = ["test_hidden.py::test_add", "test_hidden.py::test_double[9]"]
        node = await case.grade(expected_ids=ids)
        assert node.value == 0.5
        assert evidence(node)["missing"] == ["test_hidden.py::test_double[9]"]
        ids = ["test_hidden.py::test_add", "test_hidden.py::test_x"]
        words = r"test_x, but test_hidden\.py has no such test \(it has test_add, test_double\)"
        with pytest.raises(GraderError, match=words):
            await case.grade(expected_ids=ids)
        inject: list[Json] = [str(case.hidden / "test_hidden.py")]
        with pytest.raises(InputError, match="no such test"):
            PytestGrader.check_options({"expected_ids": list[Json](ids), "inject": inject})
        PytestGrader.check_options({"expected_ids": list[Json](ids), "inject": ["not/here.py"]})

    @pytest.mark.slow
    async def test_time_over_is_a_zero(self, case: Case) -> None:
        case.submit("kit.py", f"import time\n{HONEST.replace('2 * n', 'time.sleep(60)')}")
        node = await case.grade(timeout_s=2.0)
        assert (node.status, node.value) == ("scored", 0.0)
        assert evidence(node)["timed_out"] is True

    async def test_an_author_without_tests_is_told(self, case: Case) -> None:
        path = case.hide("test_none.py", "x = 1\n")
        with pytest.raises(GraderError, match="has no test of the author's to run"):
            await case.grade(inject=[path])
        with pytest.raises(GraderError, match="inject a file with tests"):
            await case.grade(inject=None)

    async def test_the_whole_suite_counts_without_hidden_files_also_if_a_solution_hides_it(
        self, case: Case
    ) -> None:
        case.given("tests/test_kit.py", HIDDEN)
        node = await case.grade(inject=None)
        assert node.value == 1.0, evidence(node)
        hiding = (
            "import sys\nframe = sys._getframe(1)\n"
            "while 'test_kit' not in frame.f_code.co_filename:\n    frame = frame.f_back\n"
            "frame.f_globals['__test__'] = False\n"
        )
        case.submit("kit.py", f"{hiding}{HONEST}")
        node = await case.grade(inject=None)  # and no mistake of the author
        assert (node.status, node.value) == ("scored", 0.0), evidence(node)

    async def test_a_program_that_is_not_there_is_named_and_one_taken_away_is_a_zero(
        self, case: Case
    ) -> None:
        for cmd in ("nosuchrunner x", "cd . && nosuchrunner"):
            with pytest.raises(GraderError, match="'nosuchrunner', which is not installed"):
                await case.grade(TestsGrader, cmd=cmd, format="tap")
        case.given("run.sh", "echo 1..1; sh kit.sh\n")
        case.submit("kit.sh", "exit 127\n")
        node = await case.grade(TestsGrader, cmd="sh run.sh", format="tap")
        assert (node.status, node.value) == ("scored", 0.0)

    async def test_variants_that_the_author_skips_are_left_out_and_a_solution_skips_none(
        self, case: Case
    ) -> None:
        hidden = case.hide("test_hidden.py", VARIANTS)
        node = await case.grade(inject=[hidden])
        assert node.value == 1.0, evidence(node)
        assert evidence(node)["counts"] == {"expected": 7, "passed": 7}
        skipping = "import pytest\n\n\ndef double(n):\n    pytest.skip('no')\n"
        case.submit("kit.py", HONEST.partition("\n\n\n")[0] + f"\n{skipping}")
        node = await case.grade(inject=[hidden])
        assert node.value == 0.0, evidence(node)
        assert evidence(node)["counts"] == {"expected": 8, "skipped": 8}

    async def test_hidden_doctests_count(self, case: Case) -> None:
        hidden = case.hide("checks/docs.py", DOCTESTS)
        inject = [{"src": hidden, "dest": "checks/docs.py"}]
        cmd = "python3 -m pytest --doctest-modules checks"
        for left, passed in ((HONEST, 3), (HALF, 2), ("import os\nos._exit(0)\n", 1)):
            case.submit("kit.py", left)
            node = await case.grade(TestsGrader, cmd=cmd, inject=inject)
            assert node.value == pytest.approx(passed / 3), evidence(node)
            assert cast("dict[str, Json]", evidence(node)["counts"])["expected"] == 3

    async def test_a_source_on_disk_is_there_for_children_and_inspect(self, case: Case) -> None:
        hidden = case.hide("test_hidden.py", SPAWNING)
        inject = {"src": hidden, "dest": "test_hidden.py"}
        node = await case.grade(inject=[{**inject, "on_disk": True}], timeout_s=120.0)
        assert node.value == 1.0, evidence(node)
        node = await case.grade(inject=[inject], timeout_s=120.0, cmd="pytest -k source")
        assert node.value == 0.0

    async def test_a_class_may_be_allowed_to_equal_what_it_likes(self, case: Case) -> None:
        case.submit("kit.py", "class Whole:\n    def __eq__(self, other):\n        return True\n")
        hidden = case.hide("test_hidden.py", MATCHING)
        for allowed, value in ([], 0.0), (["kit.Whole"], 1.0), (["kit.Other"], 0.0):
            node = await case.grade(inject=[hidden], allow_equality=allowed)
            assert node.value == value, evidence(node)
            assert ("answers equal to everything: kit.Whole" in str(node.flags)) == (value == 0.0)

    async def test_two_gradings_at_once_do_not_mix_and_no_work_is_a_zero_with_a_reason(
        self, case: Case, tmp_path: Path
    ) -> None:
        (tmp_path / "other").mkdir()
        nodes = await asyncio.gather(case.grade(), Case(tmp_path / "other").grade())
        assert [(node.status, node.value) for node in nodes] == [("scored", 1.0), ("scored", 0.0)]
        ids = ["test_hidden.py::test_add", "test_hidden.py::test_double"]
        assert evidence(nodes[1])["missing"] == ids

    async def test_a_condition_of_the_author_leaves_a_test_out_and_a_faked_one_does_not(
        self, case: Case
    ) -> None:
        hidden = case.hide("test_hidden.py", skipping("sys.platform != 'win32'"))
        case.submit("kit.py", HALF)
        node = await case.grade(inject=[hidden])
        assert node.value == 1.0, evidence(node)
        hidden = case.hide("test_hidden.py", skipping("sys.platform == 'win32'"))
        case.submit("kit.py", f"import sys\nsys.platform = 'win32'\n{HALF}")
        node = await case.grade(inject=[hidden])
        assert node.value == 0.0, evidence(node)
        assert "sys.platform" in str(node.flags)

    async def test_unittest_reports_too(self, case: Case) -> None:
        source = (
            "import sys, unittest\nfrom kit import add, double\n\n\nclass T(unittest.TestCase):\n"
            "    def test_add(self):\n        self.assertEqual(add(2, 3), 5)\n\n"
            "    def test_double(self):\n        self.assertEqual(double(4), 8)\n\n"
            "    @unittest.skipIf(sys.platform != 'win32', 'elsewhere')\n"
            "    def test_elsewhere(self):\n        self.fail()\n"
        )
        hidden = case.hide("test_unit.py", source)
        for left, value in (("raise ImportError\n", 0.0), (HALF, 0.5), (HONEST, 1.0)):
            case.submit("kit.py", left)
            cmd = "python3 -m unittest -v test_unit"
            node = await case.grade(TestsGrader, cmd=cmd, inject=[hidden])
            assert node.value == value, evidence(node)


async def test_a_step_before_the_tests_that_speaks_in_their_name(case: Case) -> None:
    """A build step of the submission takes the brief and reports a perfect run."""
    forge = (
        "import hashlib, hmac, json, os, socket, sys\n"
        "link = socket.socket(socket.AF_UNIX)\nlink.connect('/opt/assay/channel')\n"
        "told = json.loads(link.makefile().readline())\nkey = bytes.fromhex(told['key'])\n"
        "ids = ['test_hidden.py::test_add', 'test_hidden.py::test_double']\n"
        "events = [{'event': 'collected', 'ids': ids, 'errors': []}]\n"
        "events += [{'event': 'result', 'id': i, 'outcome': 'passed'} for i in ids]\n"
        "canary = told['canary']\n"
        "events += [{'event': 'canary', 'name': canary['name'], 'outcome': 'failed',"
        " 'message': canary['planted']}, {'event': 'end', 'exit': 0}]\n"
        "for n, event in enumerate(events):\n"
        "    text = json.dumps(event)\n"
        "    code = hmac.new(key, f'{n}\\n{text}'.encode(), hashlib.sha256).hexdigest()\n"
        "    link.sendall(f'{code} {n} {text}\\n'.encode())\n"
        "if os.fork() == 0:\n    os.setsid()\n    import time\n    time.sleep(30)\n"
    )
    case.submit("build.py", forge)
    node = await case.grade(TestsGrader, cmd="python3 build.py && python3 -m pytest test_hidden.py")
    assert (node.value, node.flags) == (0.0, ("second runner",))


async def test_a_run_inside_the_tests_is_refused_and_noted_and_a_forged_report_is_a_sign(
    case: Case,
) -> None:
    asks = (
        "import socket\nlink = socket.socket(socket.AF_UNIX)\nlink.connect('/opt/assay/channel')\n"
        "assert 'refused' in link.makefile().readline()\n"
    )
    case.submit("kit.py", f"{asks}{HONEST}")
    node = await case.grade()
    assert (node.value, node.flags) == (1.0, ()), evidence(node)
    assert "1 test runs inside the tests were not reported" in str(evidence(node)["notes"])
    sprays = (
        "import os\nfor fd in range(3, 1000):\n    try:\n        os.write(fd, b'2 passed\\n')\n"
        "    except OSError:\n        pass\n"
    )
    case.submit("kit.py", f"{sprays}{HONEST}")
    node = await case.grade()
    assert (node.value, node.flags) == (0.0, ("forged report",)), evidence(node)


class TestForeignRunners:
    """Runners that report over a console or in JUnit files: here, scripts that act like one."""

    async def run(self, case: Case, script: str, **options: object) -> SubScore:
        hidden = [{"src": case.hide("run.sh", script), "dest": "run.sh"}]
        return await case.grade(TestsGrader, cmd="sh run.sh", inject=hidden, **options)

    async def test_console_text_in_a_declared_format(self, case: Case) -> None:
        tap = "echo 1..2; echo 'ok 1 - adds'; echo 'not ok 2 - doubles'; exit 1"
        node = await self.run(case, tap, format="tap")
        assert (node.value, evidence(node)["channel"]) == (0.5, "console"), evidence(node)
        assert node.assurance == "reported"
        passes = "echo 1..1; echo 'ok 1 - adds'"
        assert (await self.run(case, passes, format="tap")).value == 1.0
        node = await self.run(case, f"{passes}; exit 1", format="tap")
        assert (node.value, "ended with 1" in node.reason) == (0.0, True)
        with pytest.raises(GraderError, match=r"'sh run\.sh' has no test"):
            await self.run(case, "echo 3 passed", format="tap")

    async def test_junit_files_of_this_run(self, case: Case) -> None:
        def report(*names: str) -> str:
            tests = "".join(f'<testcase classname="T" name="{name}"/>' for name in names)
            return f'<testsuite failures="-9">{tests}</testsuite>'

        case.submit("out/forged.xml", report("free1", "free2", "free3"))
        script = f"mkdir -p out; echo '{report('adds')}' > out/real.xml"
        node = await self.run(case, script, junit_xml="out/*.xml")
        assert (node.value, evidence(node)["channel"]) == (1.0, "junit"), evidence(node)
        assert node.assurance == "reported"
        assert evidence(node)["counts"] == {"expected": 1, "passed": 1}
        node = await self.run(case, "true", junit_xml="out/*.xml")
        assert node.value == 0.0
        assert "no report" in node.reason

    async def test_a_runner_of_ours_prevails_over_a_report(self, case: Case) -> None:
        case.submit("kit.py", HALF)
        forged = "<testsuite><testcase name='a'/></testsuite>"
        inject = [
            str(case.hidden / "test_hidden.py"),
            {"src": case.hide("run.sh", f'echo "{forged}" > r.xml; pytest'), "dest": "run.sh"},
        ]
        node = await case.grade(TestsGrader, cmd="sh run.sh", inject=inject, junit_xml="r.xml")
        assert (node.value, evidence(node)["channel"]) == (0.5, "private"), evidence(node)

    async def test_a_command_that_nothing_is_known_of_is_refused(self, case: Case) -> None:
        with pytest.raises(GraderError, match="junit_xml, or format"):
            await case.grade(TestsGrader, cmd="python3 test_hidden.py")

    async def test_rust_that_does_not_compile_was_accused(self, case: Case) -> None:
        hidden = [{"src": case.hide("h.rs", "#[test]\nfn adds() {}\n"), "dest": "tests/h.rs"}]
        fails = "python3 -c 'import sys; sys.exit(101)'"  # as cargo does
        node = await case.grade(TestsGrader, cmd=fails, format="cargo", inject=hidden)
        assert (node.value, node.flags) == (0.0, ()), evidence(node)
        assert "exit status 101" in node.reason


class TestWhatNoSubmissionCauses:
    """Broken or mistaken by others: an error. Broken by the submission: 0, and no false sign."""

    @pytest.mark.parametrize("harm", ["raise SyntaxError('broken')\n", "import os; os._exit(70)\n"])
    async def test_a_runner_that_breaks_before_anything_is_loaded(
        self, case: Case, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, harm: str
    ) -> None:
        parts = tmp_path / "parts"
        shutil.copytree(runners._PARTS, parts)
        (parts / "boot.py").write_text(harm, encoding="utf-8")
        monkeypatch.setattr(runners, "_PARTS", parts)
        with pytest.raises(GraderError, match="did not start"):
            await case.grade()

    async def test_a_submission_that_leaves_with_the_same_status(self, case: Case) -> None:
        for place in ("kit.py", "sitecustomize.py"):
            case.submit(place, "import os\nos._exit(70)\n")
            assert (await case.grade()).value == 0.0

    async def test_a_mistyped_test(self, case: Case) -> None:
        for name in ("test_hidden.py::test_ad", "test_hiden.py"):
            with pytest.raises(GraderError, match=name):
                await case.grade(cmd=f"python3 -m pytest {name}")

    async def test_a_test_that_the_submission_deleted(self, case: Case) -> None:
        (case.source / "test_given.py").write_text("def test_given(): pass\n", encoding="utf-8")
        case.changes.append("test_given.py")
        node = await case.grade(cmd="python3 -m pytest test_given.py", inject=[])
        assert node.value == 0.0
        assert node.flags == ()


def test_a_line_of_a_hidden_test_that_was_taken_away_is_shown_all_the_same(tmp_path: Path) -> None:
    hidden = tmp_path / "test_kit.py"
    hidden.write_text("def test_add():\n    assert add(2, 3) == 5\n", "utf-8")
    files = {"tests/test_kit.py": str(hidden)}
    output = ">   ???\nE   assert 6 == 5\n\ntests/test_kit.py:2: AssertionError\n>   ???\nend"
    shown = _with_lines(output, files)
    assert shown.startswith(">   assert add(2, 3) == 5\nE   assert 6 == 5\n")
    assert shown.endswith(">   ???\nend")
    for place in ("tests/test_kit.py:9: X", "tests/test_kit.py:0: X", "/etc/passwd:1: X"):
        assert "???" in _with_lines(f">   ???\n{place}\n", files)

    # What asks for a long line many times stays short.
    hidden.write_text(f"DATA = '{'x' * 100_000}'\n", "utf-8")
    shown = _with_lines("> ???\n" * 300 + "test_kit.py:1: \n", {"test_kit.py": str(hidden)})
    assert "DATA = 'x" in shown
    assert len(shown) < 100_000
