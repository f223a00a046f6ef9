"""Which tests a score is divided by, and what each weighs: what the author wrote, where known."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from pathlib import PurePosixPath

from assay.frozen import frozen
from assay.graders.testing.channel import RunnerReport
from assay.graders.testing.commands import Invocation
from assay.graders.testing.hidden import language_of
from assay.graders.testing.outcomes import TestOutcome
from assay.graders.testing.python_ids import PythonTests

_NARROWING = ("-k", "-m", "--deselect", "--ignore", "--lf", "--ff", "--sw", "--last-failed")
_DOCTESTS = "--doctest-modules"
_NOT_RUN = frozenset({"skipped", "xfailed", "xpassed"})
_SHOWN = 5
LEFT_OUT = "skipped or expected to fail by the author, so not counted"
"""Why a test that was heard of is not expected."""


@frozen(kw_only=True)
class Expected:
    """The expected tests."""

    ids: tuple[str, ...]
    notes: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


@frozen(kw_only=True)
class Weighed:
    """What the expected tests weigh."""

    weights: Mapping[str, float]
    variants: Mapping[str, int]
    # Names for variants of the reference's of which the submission has no counterpart.
    missing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class _Found:
    counted: set[str] = field(default_factory=set[str])
    places: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    strangers: list[str] = field(default_factory=list[str])
    left_out: list[str] = field(default_factory=list[str])


def is_test_file(path: str) -> bool:
    """Whether a path has the name of a Python test file."""
    name = PurePosixPath(path).name
    return fnmatch(name, "test*.py") or fnmatch(name, "*_test.py")


def expect(
    heard: RunnerReport,
    hidden: Mapping[str, PythonTests],
    invocation: Invocation,
    *,
    changed: Collection[str] = (),
) -> Expected:
    """Merge what a Python runner collected with what the hidden sources say."""
    if invocation.runner == "unknown":  # its words are those of make and the like
        dotted = bool(heard.collected) and not any("::" in name for name in heard.collected)
        runner = "unittest" if dotted else "pytest"
        invocation = replace(invocation, runner=runner, args=())
    found = _Found()
    for name in dict.fromkeys([*heard.collected, *heard.outcomes]):
        path, test = split_id(name, hidden)
        tests = hidden.get(path)
        if path in changed if tests is None else not tests.knows(test):
            found.strangers.append(name)
            continue
        found.places.add((path, test))
        outcome = heard.outcomes.get(name)
        skips = tests.skips.get(test) if tests else None
        by_author = skips is True or (skips is False and name in heard.marked)
        if outcome and outcome.outcome in _NOT_RUN and by_author:
            found.left_out.append(name)
        else:
            found.counted.add(name)
    heard_of = {path for path, _ in found.places}
    selected = {path for path in hidden if _is_selected(path, invocation, heard_of)}
    for name in heard.errors:
        path, _ = split_id(name, hidden)
        if path not in selected or not hidden[path].required:
            found.counted.add(name)
    expected = {*found.counted}
    named = named_targets(invocation)
    for path in selected:
        meant = [test.partition("[")[0] for target, test in named if target == path]
        expected.update(_missing(path, hidden[path], invocation, found.places, meant))
    notes = [
        *note(found.strangers, "not among the author's tests, so not counted"),
        *note(found.left_out, LEFT_OUT),
    ]
    return Expected(ids=tuple(sorted(expected)), notes=tuple(notes), left_out=tuple(found.left_out))


def weigh(
    ids: Iterable[str],
    outcomes: Mapping[str, TestOutcome],
    hidden: Mapping[str, PythonTests],
    visible: Mapping[str, PythonTests],
    variants: Mapping[str, int] | None,
) -> Weighed:
    """Let each declared test weigh the same, however many variants a submission makes of it.

    That is as many as the reference had, or else as its source lists, or else one. What a file
    makes and does not declare weighs together like one test; what the reference did not have at
    all weighs nothing where it passes. Fewer variants than the reference had weigh as many as there
    are, and the others are missing; where nothing else fails, fewer of them are right work, too.
    """
    ids = list(ids)
    is_whole = all(name in outcomes and _passed(outcomes[name]) for name in ids)
    missing: list[str] = []
    groups: dict[str, list[str]] = {}
    for name in ids:
        groups.setdefault(_unit(name, hidden), []).append(name)
    weights: dict[str, float] = {}
    had: dict[str, int] = {}
    other: list[str] = []
    for unit, names in groups.items():
        found = len(names)
        heard = any(name in outcomes for name in names)
        path, _, test = unit.partition("::")
        tests = hidden.get(path) or visible.get(path)
        if made := unit in hidden:
            listed, usual = 0, int(variants is None)
        elif tests is None:  # nobody knows whose it is
            listed, usual = 1, found if variants is None else 1
        else:
            listed = tests.variants.get(test, 1)
            # What a command leaves out by -k is known of the reference, or seen.
            usual = min(listed, found) if heard and variants is None else listed
        if made or found != listed:
            had[unit] = found
        weight = (variants or {}).get(unit, usual)
        bad = [name for name in names if name not in outcomes or not _passed(outcomes[name])]
        if heard and found < weight and variants is not None and not is_whole:
            missing.append(f"{unit}[{weight - found} more, as the reference has]")
            weights[missing[-1]] = weight - found
            weight = found
        if weight:
            weights |= dict.fromkeys(names, weight / found)
        else:
            weights |= dict.fromkeys(names, 0.0) | dict.fromkeys(bad, 1 / max(len(bad), 1))
        if heard and weight != found:
            other.append(f"{unit} ({found}, weighing {weight})")
    why = "as many as its source lists" if variants is None else "what they did for the reference"
    return Weighed(
        weights={name: weight for name, weight in weights.items() if weight != 1},
        variants=had,
        missing=tuple(missing),
        notes=tuple(note(other, f"the variants of a test weigh together {why}")),
    )


def _passed(one: TestOutcome) -> bool:
    return one.outcome == "passed"


def unmade(expected: Expected, hidden: Mapping[str, PythonTests], files: Iterable[str]) -> set[str]:
    """Those of the files in which the reference made tests, and from which now nothing came."""
    made = {_unit(name, hidden) for name in (*expected.ids, *expected.left_out)}
    return {path for path in files if path in hidden and path not in made}


def _unit(name: str, hidden: Mapping[str, PythonTests]) -> str:
    """The declared test that an id is a variant of; its file, if that does not declare it."""
    path, test = (name, "") if name in hidden else split_id(name, hidden)
    if path in hidden and not hidden[path].declares(test):
        return path
    return f"{path}::{test}" if path else name


def answer_given(ids: Sequence[str], outcomes: Mapping[str, TestOutcome]) -> dict[str, TestOutcome]:
    """Outcomes for ids that the case gives, beside those as the runner names them.

    An id without parameters stands for all of its variants, the worst of which counts. One that
    names a file by the end of its path, or none at all, stands for that file, if there is only one.
    """
    answers = dict(outcomes)
    for wanted in ids:
        if wanted in outcomes:
            continue
        variants = [one for name, one in outcomes.items() if name.partition("[")[0] == wanted]
        if not variants:
            alike = [one for name, one in outcomes.items() if _same_end(name, wanted)]
            files = {one.id.partition("::")[0] for one in alike}
            variants = alike if len(files) == 1 else []
        if variants:
            bad = [one for one in variants if one.outcome != "passed"]
            answers[wanted] = replace((bad or variants)[0], id=wanted)
    return answers


def _same_end(name: str, wanted: str) -> bool:
    return any(
        one == other or one.endswith((f"/{other}", f"::{other}")) or other.endswith(f"/{one}")
        for one, other in ((name, wanted), (name.partition("[")[0], wanted))
    )


def split_id(name: str, hidden: Mapping[str, PythonTests]) -> tuple[str, str]:
    """The file and the test within it that an id of pytest or unittest names."""
    path, separator, test = name.partition("::")
    if separator or path.endswith(".py") or "/" in path:
        test = test.partition("[")[0] if language_of(path) is None else test
        path = _known_path(path, hidden)
        return path, _without_packages(test, hidden[path]) if path in hidden else test
    dotted = name.partition(" ")[0]
    best, best_test = "", name
    for known in hidden:
        steps = known.removesuffix(".py").split("/")
        for start in range(len(steps)):
            module = ".".join(steps[start:])
            if dotted.startswith(f"{module}.") and len(dotted) - len(module) - 1 < len(best_test):
                best, best_test = known, dotted[len(module) + 1 :]
    return best, best_test.replace(".", "::") if best else name


def _without_packages(test: str, tests: PythonTests) -> str:
    """The name of a doctest as its file alone tells it."""
    if "." not in test or tests.knows(test):
        return test
    return next((name for name in tests.possible if test.endswith(f".{name}")), test)


def _known_path(path: str, hidden: Mapping[str, PythonTests]) -> str:
    """A path as the case knows it; runners may name files from another directory."""
    if path in hidden:
        return path
    alike = [one for one in hidden if one.endswith(f"/{path}") or path.endswith(f"/{one}")]
    return alike[0] if len(alike) == 1 else path


def _missing(
    path: str,
    tests: PythonTests,
    invocation: Invocation,
    places: Collection[tuple[str, str]],
    meant: Sequence[str],
) -> Iterator[str]:
    """The tests of a file that nothing was heard of; `meant` are those that the command names."""
    classes = tuple(f"{name}::" for name in meant)
    doctests = tests.doctests if _DOCTESTS in invocation.args else []
    for test in [*tests.required, *doctests]:
        if (path, test) in places:
            continue
        if invocation.runner == "unittest":
            if test in tests.cases:
                yield f"{path.removesuffix('.py')}::{test}".replace("/", ".").replace("::", ".")
        elif not any(meant) or "" in meant or test in meant or test.startswith(classes):
            yield f"{path}::{test}"


def _is_selected(path: str, invocation: Invocation, heard_of: Collection[str]) -> bool:
    """Whether the command runs the tests of a file, all of them."""
    args = invocation.args
    narrowed = any(word.partition("=")[0] in _NARROWING for word in args) or any(
        word[:2] in ("-k", "-m") for word in args
    )
    if narrowed:
        return False
    if invocation.runner == "unittest":
        return _unittest_selects(path, args)
    named = named_targets(invocation)
    explicit = any(target == path for target, _ in named)
    if not is_test_file(path) and not explicit and _DOCTESTS not in args:
        return path in heard_of
    below = any(target in ("", ".") or path.startswith(f"{target}/") for target, _ in named)
    return explicit or below or not named


def named_targets(invocation: Invocation) -> list[tuple[str, str]]:
    """Paths and tests that a pytest command names, relative to the workspace."""
    found: list[tuple[str, str]] = []
    valued = False
    for word in invocation.args:
        is_value, valued = valued, word in ("-p", "-c", "-o", "-W", "-n", "-r", "--tb", "--rootdir")
        if is_value or word.startswith("-"):
            continue
        path, _, test = word.partition("::")
        if path.endswith(".py") or "/" in path or word == path:
            found.append((_joined(invocation.cwd, path), test))
    return found


def _joined(cwd: str, path: str) -> str:
    steps: list[str] = []
    for step in PurePosixPath(cwd, path.removeprefix("/workspace/")).parts:
        if step == "..":
            steps = steps[:-1]
        elif step != ".":
            steps.append(step)
    return "/".join(steps)


def _unittest_selects(path: str, args: Sequence[str]) -> bool:
    if not is_test_file(path) and not any(PurePosixPath(path).stem in word for word in args):
        return False
    words = [word for word in args if not word.startswith("-")]
    if not words or words[0] == "discover":
        return True
    module = path.removesuffix(".py").replace("/", ".")
    names = (word.removesuffix(".py").replace("/", ".") for word in words)
    return any(f".{module}".endswith(f".{name}") or name.startswith(f"{module}.") for name in names)


def note(names: Iterable[str], why: str) -> list[str]:
    """One line about some tests; no line if there are none."""
    shown = list(names)
    if not shown:
        return []
    more = f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
    return [f"{', '.join(name[:200] for name in shown[:_SHOWN])}{more}: {why}"]
