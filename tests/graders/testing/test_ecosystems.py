"""One honest and one cheating solution in each of some ecosystems, through the real grader.

The author of each leaves a third test out, which is nobody's loss. Each needs its toolchain and is
skipped, with the reason, where that is not installed.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest

from assay.graders.testing.reports import stands_in
from assay.graders.testing.runners import tools_for
from assay.graders.tests import TestsGrader
from assay.sandbox import probe
from assay.scoring.results import SubScore
from assay.types import Workspace
from tests.each import each
from tests.written_files import write_files

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.slow,
    pytest.mark.skipif(probe().tier is None, reason="no sandbox on this machine"),
]

_JARS = Path("/usr/share/java")
_JUNIT = (
    "apiguardian-api junit-jupiter-api junit-jupiter-engine junit-platform-commons "
    "junit-platform-console junit-platform-engine junit-platform-launcher "
    "junit-platform-reporting opentest4j opentest4j-reporting-events picocli"
)
_CLASSES = ":".join(f"{_JARS}/{name}.jar" for name in _JUNIT.split())

_BRIEF = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""What a Java machine wants that does not live long: it compiles little, and on one thread."""


@dataclass(frozen=True, kw_only=True)
class Ecosystem:
    """How tests are run in one ecosystem, and solutions of a test of two halves.

    ``cheat`` gets neither half right and tries to be paid for both.
    """

    cmd: str
    hidden: dict[str, str]
    honest: dict[str, str]
    half: dict[str, str]
    cheat: dict[str, str]
    base: dict[str, str] = field(default_factory=dict[str, str])
    options: dict[str, object] = field(default_factory=dict[str, object])
    program: str = ""
    needs: str = ""


RUST_ADD = "pub fn add(a: i32, b: i32) -> i32 { a + b }\n"
GO_ADD = "func Add(a, b int) int { return a + b }\n"
JAVA_ADD = "static int add(int a, int b) { return a + b; }"
JAVA = {
    "test": "import static org.junit.jupiter.api.Assertions.assertEquals;\n"
    "import org.junit.jupiter.api.*;\nclass KitTest {\n"
    "  @Disabled @Test void later() { Assertions.fail(); }\n"
    "  @Disabled @Nested class Off { @Test void over() { Assertions.fail(); } }\n"
    "  @Test void adds() { assertEquals(3, Kit.add(1, 2)); }\n"
    "  @Test void doubles() { assertEquals(8, Kit.twice(4)); }\n}\n",
    "honest": f"class Kit {{ {JAVA_ADD} static int twice(int n) {{ return 2 * n; }} }}",
    "half": f"class Kit {{ {JAVA_ADD} static int twice(int n) {{ return n; }} }}",
    "cheat": "class Kit { static int add(int a, int b) { return twice(0); }\n"
    "  static int twice(int n) {\n"
    '    System.out.println("Tests run: 2, Failures: 0, Errors: 0, Skipped: 0");\n'
    "    Runtime.getRuntime().halt(0); return 0;\n  }\n}\n",
}

ECOSYSTEMS = {
    "node": Ecosystem(
        cmd="node --test",
        hidden={
            "hidden.test.js": "const { add, double } = require('./kit.js');\n"
            "const test = require('node:test');\nconst assert = require('node:assert');\n"
            "test('later', { skip: true }, () => assert.fail());\n"
            "test('adds', () => assert.equal(add(1, 2), 3));\n"
            "test('doubles', () => assert.equal(double(4), 8));\n"
        },
        honest={"kit.js": "exports.add = (a, b) => a + b; exports.double = (n) => 2 * n;"},
        half={"kit.js": "exports.add = (a, b) => a + b; exports.double = (n) => n;"},
        cheat={"kit.js": "console.log('# pass 2\\n# fail 0'); process.reallyExit(0);"},
        program="node",
    ),
    "rust": Ecosystem(
        cmd="cargo test",
        options={"format": "cargo"},
        base={"Cargo.toml": '[package]\nname = "kit"\nversion = "0.1.0"\nedition = "2021"\n'},
        hidden={
            "tests/hidden.rs": "use kit::{add, double};\n"
            "#[test]\n#[ignore]\nfn later() { panic!() }\n"
            "#[test]\nfn adds() { assert_eq!(add(1, 2), 3); }\n"
            "#[test]\nfn doubles() { assert_eq!(double(4), 8); }\n"
            "#[cfg(windows)]\n#[test]\nfn elsewhere() {}\n"
        },
        honest={"src/lib.rs": f"{RUST_ADD}pub fn double(n: i32) -> i32 {{ 2 * n }}\n"},
        half={"src/lib.rs": f"{RUST_ADD}pub fn double(n: i32) -> i32 {{ n }}\n"},
        cheat={
            "src/lib.rs": "pub fn add(_: i32, _: i32) -> i32 { double(0) }\n"
            "pub fn double(_: i32) -> i32 {\n"
            '    println!("test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured");\n'
            "    std::process::exit(0)\n}\n"
        },
        program="cargo",
    ),
    "go": Ecosystem(
        cmd="go test -json ./...",
        options={"format": "go-json", "timeout_s": 240.0},
        base={"go.mod": "module kit\n\ngo 1.19\n"},
        hidden={
            "kit_test.go": 'package kit\n\nimport "testing"\n\n'
            'func TestLater(t *testing.T) {\n\tt.Skip("later")\n}\n'
            "func TestAdd(t *testing.T) {\n\tif Add(1, 2) != 3 {\n\t\tt.Fatal()\n\t}\n}\n"
            "func TestDouble(t *testing.T) {\n\tif Double(4) != 8 {\n\t\tt.Fatal()\n\t}\n}\n",
            "git_test.go": 'package kit\n\nimport (\n\t"os/exec"\n\t"testing"\n)\n\n'
            "func TestBlame(t *testing.T) {\n"
            '\tif _, err := exec.LookPath("no-such-program"); err != nil {\n\t\tt.Skip()\n\t}\n}\n',
            "slow_test.go": '//go:build slow\n\npackage kit\n\nimport "testing"\n\n'
            "func TestSlow(t *testing.T) {}\n",
        },
        honest={"kit.go": f"package kit\n{GO_ADD}func Double(n int) int {{ return 2 * n }}\n"},
        half={"kit.go": f"package kit\n{GO_ADD}func Double(n int) int {{ return n }}\n"},
        cheat={
            "kit.go": 'package kit\n\nimport (\n\t"fmt"\n\t"os"\n)\n\n'
            "func Add(a, b int) int { return Double(0) }\n"
            "func Double(n int) int {\n"
            '\tfmt.Println("--- PASS: TestAdd (0.00s)\\n--- PASS: TestDouble (0.00s)\\nPASS")\n'
            "\tos.Exit(0)\n\treturn 0\n}\n"
        },
        program="go",
    ),
    "java": Ecosystem(
        cmd=f"javac {_BRIEF.replace('-XX', '-J-XX')} -cp {_CLASSES} -d /tmp/classes *.java && "
        f"java {_BRIEF} -cp {_CLASSES}:/tmp/classes org.junit.platform.console.ConsoleLauncher "
        "--scan-classpath /tmp/classes --reports-dir reports --disable-banner",
        options={"junit_xml": "reports/TEST-junit-jupiter.xml"},
        hidden={"KitTest.java": JAVA["test"]},
        honest={"Kit.java": JAVA["honest"]},
        half={"Kit.java": JAVA["half"]},
        cheat={"Kit.java": JAVA["cheat"]},
        program="javac",
        needs=str(_JARS / "junit-platform-console.jar"),
    ),
}


def workspace(root: Path, one: Ecosystem, solution: dict[str, str]) -> Workspace:
    """A tree with a solution, and the toolchain that the command needs."""
    write_files(root, {**one.base, **solution})
    tools = tools_for(one.cmd)
    path = ":".join([*tools.path_entries, "/usr/local/bin:/usr/bin:/bin"])
    return Workspace(path=str(root), env={**tools.env, "PATH": path}, mounts=tools.mounts)


@pytest.fixture(params=list(ECOSYSTEMS))
def ecosystem(request: pytest.FixtureRequest) -> Ecosystem:
    one = ECOSYSTEMS[request.param]
    if one.program and shutil.which(one.program) is None:
        pytest.skip(f"no {one.program} on this machine")
    if one.needs and not Path(one.needs).exists():
        pytest.skip(f"no {one.needs} on this machine")
    return one


@pytest.mark.parametrize(("solution", "expected"), [("honest", 1.0), ("half", 0.5), ("cheat", 0.0)])
async def test_each_ecosystem(
    tmp_path: Path, ecosystem: Ecosystem, solution: str, expected: float
) -> None:
    hidden, tree = tmp_path / "hidden", tmp_path / "tree"
    tree.mkdir()
    write_files(hidden, ecosystem.hidden)
    node = await TestsGrader.grade(
        workspace=workspace(tree, ecosystem, getattr(ecosystem, solution)),
        cmd=ecosystem.cmd,
        inject=[{"src": str(hidden), "dest": "."}],
        **cast("dict[str, Any]", ecosystem.options),
    )
    assert node.value == expected, node.reason
    assert node.passed == (expected == 1.0)


DECLARED = [
    "package org.junit.jupiter.api;\npublic class Assertions {}",
    "/* Ours */ package org . junit\n. jupiter.api ; class A {}",
    "\\u0070ackage org.\\uu006aunit.jupiter.api; class A {}",
    "package/**/org./* x */junit; class A {}",
    'package /* " */ org.opentest4j; class A { String s = "//"; }',
]


@each("text", DECLARED)
def test_attack_assertions_of_its_own_in_java(tmp_path: Path, text: str) -> None:
    """Wherever the file lies: a compiler goes by what stands in it."""
    write_files(tmp_path, {"tree/Kit.java": text, "junit/src/org/junit/Test.java": ""})
    tree, changes = str(tmp_path / "tree"), ("Gone.java", "Kit.java")
    changed = Workspace(path=tree, source=str(tmp_path / "tree"), changes=changes)
    assert "which is a test library's" in stands_in(changed)
    library = replace(changed, source=str(tmp_path / "junit"))
    is_junit = "opentest4j" not in text
    assert bool(stands_in(library)) is not is_junit, "the library itself may have it"


@each(
    "text",
    [
        "package kit; // package org.junit\nclass A {}",
        'package kit; import org.junit.Test; class A { String s = "package org.junit"; }',
        "package org.junitish; class A {}",
        "",
    ],
)
def test_honest_java_stands_in_for_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "Kit.java").write_text(text)
    honest = Workspace(path=str(tmp_path), source=str(tmp_path), changes=("Kit.java",))
    assert stands_in(honest) == ""


async def test_a_run_with_assertions_of_its_own_is_void(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "Kit.java").write_text(DECLARED[0])
    report = '<testsuite><testcase classname="K" name="adds"/></testsuite>'
    score = await TestsGrader.grade(
        workspace=Workspace(path=str(tree), source=str(tmp_path), changes=("Kit.java",)),
        cmd=f"echo '{report}' > TEST.xml",
        junit_xml="TEST.xml",
        expected_ids=["K.adds"],
    )
    assert (score.value, score.passed) == (0.0, False)
    assert "is a test library's" in str(score.flags)


_ONE, _EACH = "go test -json -run '^TestAdd$' ./...", "go test -json"
_SAYS = r'os.Stdout.WriteString("\x16--- PASS: TestAdd (0.00s)\n--- PASS: TestAdd (0.00s)\n")'
_ENDS_IN_ADD = f"func Add(a, b int) int {{\n\t{_SAYS}\n\tsyscall.Exit(%d)\n\treturn 0\n}}\n"
# What is run, what is left, what it is worth, and whether it is a cheat.
PRINTED = {
    "honest": (_ONE, GO_ADD, 1.0, False),
    "parallel": (_EACH, GO_ADD, 1.0, False),
    "ends first": (_ONE, f"func init() {{\n\t{_SAYS}\n\tsyscall.Exit(0)\n}}\n{GO_ADD}", 0.0, True),
    "ends in the test": (_ONE, _ENDS_IN_ADD % 0, 0.0, True),
    # The canary of its file has failed before what is parallel goes on.
    "ends in a parallel test": (_EACH, _ENDS_IN_ADD % 1, 0.0, True),
    "panics": (_ONE, 'func Add(a, b int) int { panic("oh") }\n', 0.0, False),
}


@pytest.mark.skipif(shutil.which("go") is None, reason="no go on this machine")
@pytest.mark.parametrize("name", PRINTED)
async def test_attack_a_printed_report_where_a_canary_is_a_subtest(
    tmp_path: Path, name: str
) -> None:
    """No other test can be one of ``^TestAdd$``; a subtest of it can."""
    cmd, left, expected, cheats = PRINTED[name]
    go, tree = ECOSYSTEMS["go"], tmp_path / "tree"
    tree.mkdir()
    parallel = "t.Parallel(); " if cmd == _EACH else ""
    hidden = (
        'package kit\n\nimport "testing"\n\n/*\nfunc TestAdd(t *testing.T) {\n*/\n'
        f"func TestAdd(t *testing.T) {{ {parallel}if Add(1, 2) != 3 {{ t.Fatal() }} }}\n"
    )
    write_files(tmp_path / "hidden", {"kit_test.go": hidden})
    uses = 'package kit\n\nimport (\n\t"os"\n\t"syscall"\n)\n\nvar _, _ = os.Exit, syscall.Exit\n\n'
    node = await TestsGrader.grade(
        workspace=workspace(tree, go, {"kit.go": uses + left}),
        cmd=cmd,
        inject=[{"src": str(tmp_path / "hidden"), "dest": "."}],
        **cast("dict[str, Any]", go.options),
    )
    assert (node.value, bool(node.flags)) == (expected, cheats), (node.reason, node.flags)


async def _told_by_go(tmp_path: Path, hidden: str, **options: Any) -> SubScore:
    """The score of a report in which one test passed."""
    tree, tools, source = tmp_path / "tree", tmp_path / "tools", tmp_path / "kit_test.go"
    for directory in (tree, tools):
        directory.mkdir()
    source.write_text(hidden)
    lines = "".join(
        f"echo '{json.dumps({'Action': 'pass', 'Package': 'kit', **test})}'\n"
        for test in ({"Test": "TestAdd"}, {})
    )
    (tools / "go").write_text(f'#!/bin/sh\n[ "$1 $GOFLAGS" = "test -json " ] || exit 0\n{lines}')
    (tools / "go").chmod(0o755)
    stands_in = Workspace(
        path=str(tree),
        env={"PATH": "/opt/tools:/usr/bin:/bin"},
        mounts=((str(tools), "/opt/tools"),),
    )
    return await TestsGrader.grade(
        workspace=stands_in, cmd="go test ./...", inject=[str(source)], **options
    )


async def test_go_test_is_told_to_name_its_tests(tmp_path: Path) -> None:
    hidden = "package kit\nfunc TestAdd(t *testing.T) {}\n"
    node = await _told_by_go(tmp_path, hidden, expected_ids=["kit::TestAdd"])
    assert "kit" in str((node.metadata or {})["tests"]), node


@pytest.mark.parametrize("ids", [(), ("kit::TestAdd",)])
async def test_attack_a_report_of_a_file_whose_constraint_cannot_be_told(
    tmp_path: Path, ids: tuple[str, ...]
) -> None:
    hidden = '//go:build !race\n\npackage kit\nimport "testing"\nfunc TestAdd(t *testing.T) {}\n'
    node = await _told_by_go(tmp_path, hidden, **({"expected_ids": ids} if ids else {}))
    assert (node.value, node.flags) == (0.0, ("canary missing",))
