"""Outcomes learnt from what a foreign runner reports: files that it writes, or its console.

Before the run its sources are read and canaries planted. A run in which the planted test passes, or
is not heard of, is not the run that was asked for: the solution ended the process, replaced the
assertions, or wrote the report itself. Planted are Go, Rust, and JavaScript for Jest, Vitest and
Mocha. Java is not: a method cannot be appended to a class without understanding its source.

The file system dies with the command, so that is wrapped: files that match before it are removed,
so that no report is older than the run; what it leaves running is killed; and what matches then is
packed into one file of ours.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import tempfile
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from assay.errors import GraderError, InputError
from assay.graders.files import without_comments
from assay.graders.signs import JAVA_TEST_LIBRARIES
from assay.graders.testing.attempt import RunnerPlan, TestCommand, attempt
from assay.graders.testing.authors import kind_of, read_authors
from assay.graders.testing.channel import RunnerChannel
from assay.graders.testing.commands import Invocation
from assay.graders.testing.expected import LEFT_OUT, answer_given, note
from assay.graders.testing.hidden import language_of, source_text
from assay.graders.testing.outcomes import TestOutcome, TestRun
from assay.graders.testing.run import conclude
from assay.graders.testing.selected import Selection, modules_of, select
from assay.graders.testing.static_ids import GO, GO_TEST, blank, read_static_tests
from assay.graders.tree import read_regular, regular_files
from assay.sandbox import CommandResult, Mount
from assay.types.submission import Workspace

_NAMING = frozenset({"cargo", "go-json", "tap"})
"""Console formats that name every test, so that a canary is seen in them."""

_STOPS_EARLY = re.compile(r"(?:^|\s)(?:-b|--bail|-failfast|--fail-fast)\b")


_GO_PARALLEL = re.compile(r"\.\s*Parallel\s*\(")

PACKED = "/opt/assay/reports"
"""Where the sandbox shows the file that the reports are packed into."""

_JAVA = (".java", ".kt", ".kts", ".groovy", ".scala")
_INSIDE = "y"
"""Stands in the name of a canary that is skipped; the others have an ``x``, and fail."""
_MOST_SOURCE = 16 << 20
_MOST_FILES = 100
_MOST_BYTES = 16 * 1024 * 1024
_MOST_OPTIONAL = 3
_TOOLS = ("find", "head", "tar")
_TOOLS_AT = "/usr/local/bin:/usr/bin:/bin"
PACKS = f"""PATH={_TOOLS_AT}; cd /tmp || exit 1
find . -maxdepth 0 -type d -size -9 -print0 | head -z -n 1 |
tar -cf packed --no-recursion --null -T - && tar -tf packed | head -n 1 | grep -q . || echo packed
"""
"""A shell line that prints a word where reports could not be packed: a program is missing."""

_WRAPPER = f"""
line=$1
shift
(PATH={_TOOLS_AT}
    find . '(' -type f -o -type l ')' '(' "$@" ')' -exec rm -f -- '{{}}' +)
/bin/sh -c "$line"
status=$?
kill -KILL -1 2>/dev/null
(PATH={_TOOLS_AT}
    cd /workspace && find . -type f -size -{_MOST_BYTES // 512 + 1} '(' "$@" ')' -print0 |
    head -z -n {_MOST_FILES} | tar -cf {PACKED} --no-recursion --null -T -) 2>/dev/null
exit $status
"""


def check_globs(globs: Sequence[str]) -> None:
    """Refuse globs that do not stay inside the workspace."""
    for glob in globs:
        steps = glob.removeprefix("/workspace/").split("/")
        if not glob or ".." in steps or steps[0] == "" or "\0" in glob or "\n" in glob:
            raise InputError(
                f"junit_xml {glob!r} is not a glob inside the workspace",
                hint="write it like build/reports/**/*.xml",
            )
        if glob.count("**") > _MOST_OPTIONAL:
            raise InputError(f"junit_xml {glob!r} has more than {_MOST_OPTIONAL} **")


def wrapped(line: str, globs: Sequence[str], *, on_host: bool = True) -> list[str]:
    """The words that run a shell line and pack the files it leaves for some globs."""
    import shutil

    check_globs(globs)
    # An image was asked before its case began.
    tools = _TOOLS if on_host else ()
    missing = [tool for tool in tools if shutil.which(tool, path=_TOOLS_AT) is None]
    if missing:
        raise GraderError(f"JUnit reports need {', '.join(missing)}", hint="install them")
    words: list[str] = []
    for glob in globs:
        for pattern in _patterns(glob):
            words += ["-o", "-regex", pattern]
    return ["/bin/sh", "-c", _WRAPPER, "sh", line, *words[1:]]


def read_packed(path: str) -> dict[str, bytes]:
    """The packed files by path in the workspace; none if nothing readable was packed."""
    import tarfile

    found: dict[str, bytes] = {}
    left = _MOST_BYTES
    with suppress(tarfile.TarError, OSError, EOFError, ValueError), tarfile.open(path, "r:") as tar:
        for member in tar:
            if member.type != tarfile.REGTYPE or member.size > left or len(found) == _MOST_FILES:
                continue
            left -= member.size
            content = tar.extractfile(member)
            if content is not None:
                found[member.name.removeprefix("./")] = content.read()
    return found


def _patterns(glob: str) -> list[str]:
    """A glob as regular expressions that every ``find`` reads alike, over paths from ``./``."""
    rest = glob.removeprefix("/workspace/").removeprefix("./")
    found = ["[.]/"]
    while rest:
        if rest.startswith("**/"):
            rest = rest[3:]
            found = [*found, *(f"{one}.*/" for one in found)]
            continue
        if rest.startswith("**"):
            piece, rest = ".*", rest[2:]
        elif bracket := re.match(r"\[[!^]?\]?[^\]/]*\]", rest):
            inside = bracket.group()
            piece, rest = inside.replace("[!", "[^", 1), rest[len(inside) :]
        else:
            sign, rest = rest[0], rest[1:]
            piece = {"*": "[^/]*", "?": "[^/]"}.get(sign, _literal(sign))
        found = [one + piece for one in found]
    return found


def _literal(sign: str) -> str:
    if sign in "^\\":
        return f"\\{sign}"
    return f"[{sign}]" if sign in ".+$[]" else sign


_CONSOLE_BYTES = 8 * 1024 * 1024
"""How much of a console is read: verbose runners print a line or more for each test."""


async def run_reported(plan: RunnerPlan, foreknown: Foreknown) -> TestRun:
    """Run the command once and read its report.

    Where it turns out to start a runner that reports to us, that report prevails.
    """
    command = plan.command
    if not command.junit_xml:
        channel, result = await attempt(plan, output_bytes=_CONSOLE_BYTES)
        return await _judge(plan, foreknown, channel, result, {})
    with tempfile.TemporaryDirectory(prefix="assay-reports-") as directory:
        packed = Path(directory, "reports.tar")
        packed.touch()
        channel, result = await attempt(
            plan,
            argv=wrapped(command.cmd, command.junit_xml, on_host=plan.workspace.image is None),
            mounts=[Mount(source=str(packed), target=PACKED, writable=True)],
        )
        return await _judge(plan, foreknown, channel, result, read_packed(str(packed)))


async def _judge(
    plan: RunnerPlan,
    foreknown: Foreknown,
    channel: RunnerChannel,
    result: CommandResult,
    reports: dict[str, bytes],
) -> TestRun:
    if channel.connected:
        return await conclude(plan, channel, result, {})
    outcomes, tampered, ran = foreknown.sift(_outcomes(plan.command, result, reports))
    tampered = tampered or await asyncio.to_thread(stands_in, plan.workspace)
    notes: tuple[str, ...] = ()
    authors = read_authors(
        foreknown.hidden,
        plan.workspace,
        console=plan.command.format,
        junit=bool(plan.command.junit_xml),
        selection=foreknown.selection,
        ran=ran,
    )
    if authors.tell_of(foreknown.planted.keys() - ran, outcomes):
        tampered = tampered or "canary missing"
    if plan.command.ids:
        outcomes = answer_given(plan.command.ids, outcomes)
        expected = {*plan.command.ids}
    else:
        spared = authors.left_out(outcomes)
        heard = {name: one for name, one in outcomes.items() if name not in spared}
        counted = authors.count(heard, canaries=bool(ran) and not tampered)
        expected = {*counted.ids, *counted.missing}
        notes = (*note(sorted(spared), LEFT_OUT), *counted.notes)
    if foreknown.must_fail(ran) and plan.invocation.exact and result.exit_code == 0:
        tampered = tampered or "a failed canary ended in success"
    why = _incomplete(plan, result, reports)
    passed = any(one.outcome == "passed" for one in outcomes.values())
    if tampered == "canary missing" and not passed and result.exit_code != 0:
        # What does not compile runs no canary either, and claims nothing.
        tampered, why = "", why or f"no test was run (exit status {result.exit_code})"
    why = why or tampered
    if not why and not ran:
        why = _contradiction(plan, result, outcomes)
    return TestRun(
        outcomes=outcomes,
        expected=tuple(sorted(expected)),
        why=why,
        flags=(tampered,) if tampered and why == tampered else (),
        channel="junit" if plan.command.junit_xml else "console",
        result=result,
        notes=notes,
    )


def stands_in(workspace: Workspace) -> str:
    """Which file of the submission is of a package of Java's test libraries; empty if none is.

    Its classes are found before the library's: an ``Assertions`` of its own agrees with everything.
    Where a file lies says nothing, ``javac`` goes by what stands in it. A source that has some of
    that library itself is the library.
    """
    changed = [path for path in workspace.changes or () if path.endswith(_JAVA)]
    if not changed or workspace.source is None:
        return ""
    given = "\n".join(f"/{path.as_posix()}" for path in regular_files(Path(workspace.source)))
    names = [name for name in JAVA_TEST_LIBRARIES if f"/{name.replace('.', '/')}/" not in given]
    said = "|".join(r"`?\s*\.\s*`?".join(name.split(".")) for name in names)
    declared = re.compile(rf"\bpackage\s+`?({said})\b")
    root = Path(workspace.path).resolve()
    for path in changed if names else ():
        real = (root / path).resolve()  # a compiler follows links
        if not (real.is_file() and real.is_relative_to(root)):
            continue
        data = read_regular(root, real.relative_to(root), limit=_MOST_SOURCE)
        if isinstance(data, str):
            return f"{path} {data}"
        text = re.sub(
            r"\\u+([0-9a-fA-F]{4})",
            lambda one: chr(int(one[1], 16)),
            data.decode("utf-8", "replace"),
        )
        if found := declared.search(without_comments(text, "java", texts=False)):
            library = re.sub(r"[`\s]", "", found[1])
            return f"{path} is of the package {library}, which is a test library's"
    return ""


def _outcomes(
    command: TestCommand, result: CommandResult, reports: dict[str, bytes]
) -> dict[str, TestOutcome]:
    from assay.graders.testing.console import read_console
    from assay.graders.testing.junit import read_junit

    if command.junit_xml:
        return read_junit(reports)
    return read_console(command.format or "", f"{result.stdout}\n{result.stderr}")


def _incomplete(plan: RunnerPlan, result: CommandResult, reports: dict[str, bytes]) -> str:
    if result.status == "timed_out":
        return f"the tests did not end within {plan.command.timeout_s:g} s"
    if result.status == "output_limit":
        return "the tests printed more than is read"
    if result.exit_code is not None and result.exit_code < 0:
        return f"the command was ended by signal {-result.exit_code}"
    if result.truncated and not plan.command.junit_xml:
        return f"the tests printed more than the {_CONSOLE_BYTES} bytes that are read"
    if plan.command.junit_xml and not reports:
        return f"the command wrote no report to {', '.join(plan.command.junit_xml)}"
    return ""


def _contradiction(
    plan: RunnerPlan, result: CommandResult, outcomes: dict[str, TestOutcome]
) -> str:
    """Where the exit status and the report do not go together."""
    bad = any(one.outcome in ("failed", "error") for one in outcomes.values())
    if not bad and result.exit_code != 0:
        return f"no test is reported as failed, but the command ended with {result.exit_code}"
    if bad and result.exit_code == 0 and plan.invocation.exact:
        return "the command ended with success, but its report has failures"
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Canary:
    """A test that must fail."""

    name: str
    # Random value that its failure must tell where the report has messages.
    planted: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreknown:
    """What is known of a run before it."""

    planted: Mapping[str, str] = field(default_factory=dict[str, str])
    canary: Canary
    hidden: Mapping[str, str] = field(default_factory=dict[str, str])
    selection: Selection = field(default_factory=Selection)

    def sift(
        self, outcomes: Mapping[str, TestOutcome]
    ) -> tuple[dict[str, TestOutcome], str, frozenset[str]]:
        """Take canaries out of a report; and the planted files that are run, for all it says."""
        paths = [*self.planted]
        sure = {n for n, path in enumerate(paths) if self.selection.runs(path, self.hidden[path])}
        each = re.compile(rf"{self.canary.name}[x{_INSIDE}]\d", re.IGNORECASE)
        due = {n: len(each.findall(self.planted[paths[n]])) for n in sure}
        real, why, heard = without_canaries(outcomes, self.canary, planted=due)
        return real, why, frozenset(path for n, path in enumerate(paths) if n in sure | heard)

    def must_fail(self, ran: Collection[str]) -> bool:
        """Whether a canary of one of these files fails."""
        name = f"{self.canary.name}x"
        return any(name in self.planted[path].casefold() for path in ran)


def foresee(
    command: TestCommand, invocation: Invocation, files: Mapping[str, str], workspace: Workspace
) -> Foreknown:
    """Read the hidden sources, and plant canaries where one will be seen and harms nothing."""
    canary = Canary(name=f"c{secrets.token_hex(8)}", planted=secrets.token_hex(16))
    planted: dict[str, str] = {}
    sources = {
        path: text
        for path, place in files.items()
        if _is_source(path) and (text := _text(place)) is not None
    }
    selection = select(
        command.cmd,
        invocation,
        flags=workspace.env.get("GOFLAGS", ""),
        modules=modules_of(workspace.source, sources),
    )
    for may_run in (selection.may_run, selection.runs):
        planted = {}
        for path, text in sources.items():
            number = len(planted)
            changed = plant_canary(path, text, canary, number=number, selection=selection)
            if changed is not None and may_run(path, text):
                planted[path] = changed
        if _bears_canaries(command, invocation, planted):
            break
    else:
        planted = {}
    return Foreknown(planted=planted, canary=canary, hidden=sources, selection=selection)


def _is_source(path: str) -> bool:
    return bool(language_of(path) or kind_of(path)) or PurePosixPath(path).name == "go.mod"


def _text(place: str) -> str | None:
    try:
        return source_text(place)
    except GraderError:  # it is data, whatever its suffix says
        return None


def _bears_canaries(command: TestCommand, invocation: Invocation, planted: Collection[str]) -> bool:
    """Whether a test that fails on purpose will be named, and keep no other from running."""
    named = bool(command.junit_xml) or command.format in _NAMING
    ends = "&&" not in command.cmd.rpartition(invocation.program)[2]
    several = sum(path.endswith(".rs") for path in planted) > 1
    # cargo stops after the first program of tests that fails.
    stops = _STOPS_EARLY.search(command.cmd) or (several and "--no-fail-fast" not in command.cmd)
    return named and invocation.runner is None and ends and not stops


def plant_canary(
    path: str, text: str, canary: Canary, *, number: int = 0, selection: Selection | None = None
) -> str | None:
    """Append the canary to a test source; None where it would not be run, or not be one."""
    selection = selection or Selection()
    tests = read_static_tests(path, text)
    declared = tests.names or tests.possible or (selection.ignored and tests.skipped)
    if not declared or not selection.may_run(path, text):
        return None
    name = selection.canary(path, tests.names, f"{canary.name}x{number}")
    if language_of(path) == "go":
        # One that is parallel goes on after the canary of its file.
        inside = name is None or _GO_PARALLEL.search(blank(text, GO))
        carriers = selection.carriers(path, tests.names) if inside else []
        return _go(text, name, carriers, canary, number)
    if name is None:
        return None
    match language_of(path):
        case "rust":
            marks = "#[test]\n#[ignore]" if selection.ignored else "#[test]"
            return f'{text}\n{marks}\nfn {name}() {{\n    panic!("{canary.planted}");\n}}\n'
        case "javascript":
            # `test` in Jest and Vitest with globals, `it` in all three.
            return (
                f"{text}\n;(typeof it === 'function' ? it : test)('{name}', () => "
                f"{{ throw new Error('{canary.planted}'); }});\n"
            )
        case _:
            return None


def _go(
    text: str, name: str | None, carriers: Collection[str], canary: Canary, number: int
) -> str | None:
    """A canary behind all tests, and one that each of the carriers ends with.

    The latter is skipped, as the test would fail with it.
    """
    tests = [*GO_TEST.finditer(blank(text, GO))]
    changed, testing = text, tests[0]["testing"]
    for test in reversed(tests):
        if test["name"] in carriers:
            skips = f'func(t *{testing}.T) {{ t.Skip("{canary.planted}") }}'
            ends = f' defer {test["t"]}.Run("{canary.name}{_INSIDE}{number}", {skips});'
            changed = f"{changed[: test.end()]}{ends}{changed[test.end() :]}"
    if name is not None:
        function = name if name.startswith("Test") else f"Test{name.capitalize()}"
        fails = f'\tt.Fatal("{canary.planted}")\n'
        changed += f"\nfunc {function}(t *{testing}.T) {{\n{fails}}}\n"
    return changed if changed != text else None


def without_canaries(
    outcomes: Mapping[str, TestOutcome], canary: Canary, *, planted: Mapping[int, int]
) -> tuple[dict[str, TestOutcome], str, set[int]]:
    """Take the canaries out of a report: how many with a number have to be in it, is planted."""
    real: dict[str, TestOutcome] = {}
    heard: Counter[int] = Counter()
    passed = False
    for name, outcome in outcomes.items():
        how, number = _number_of(name, canary)
        if number is None:
            real[name] = outcome
        elif outcome.outcome in (("skipped",) if how == _INSIDE else ("failed", "error")):
            heard[number] += 1
        elif how != _INSIDE or outcome.outcome == "passed":  # a subtest may have been cut short
            passed = True
    wrong = "canary missing" if any(heard[n] < due for n, due in planted.items()) else ""
    return real, "canary passed" if passed else wrong, set(heard)


def _number_of(name: str, canary: Canary) -> tuple[str, int | None]:
    last = re.split(r"::|\.| > |/", name)[-1]
    found = re.search(rf"{re.escape(canary.name)}([x{_INSIDE}])(\d{{1,6}})", last, re.IGNORECASE)
    return ("", None) if found is None else (found[1].lower(), int(found[2]))
