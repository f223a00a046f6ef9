"""Results that promptfoo recorded, each with its case, and how they agree with a replay."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping, Sequence

from assay.errors import AssayError, InputError, Location
from assay.graders.apply import grade_alone
from assay.graders.usage import USAGE, RunUsage
from assay.interop.openai_read import RecordedResult, documents_of
from assay.interop.openai_replay import Given, Replay, compare, kappa_of
from assay.interop.promptfoo_graders import OF_TRACES
from assay.interop.promptfoo_read import Config, model_of
from assay.interop.promptfoo_suite import (
    ImportedCase,
    ImportedGrader,
    ImportedTests,
    RecordedTest,
    parted,
)
from assay.scoring.json_safe import Json
from assay.types import AgentStep, Submission, Trace

WHOLE = "the whole test"
"""What the verdicts on tests are called in a replay."""


def read_results(file: str, imported: ImportedTests, config: Config) -> list[RecordedTest]:
    """Read the results that promptfoo wrote, each with the case that it belongs to.

    Raises:
        InputError: For a file that holds none.
    """
    found: list[RecordedTest] = []
    known: dict[str, list[ImportedCase]] = {}
    for case in imported.cases:
        known.setdefault(_key(case.test.variables), []).append(case)
    for around, whole in documents_of(file):
        inner = whole.get("results") if isinstance(whole, dict) else None
        listed = inner.get("results") if isinstance(inner, dict) else [whole]
        for result in listed if isinstance(listed, list) else [whole]:
            if not (isinstance(result, dict) and "testCase" in result):
                place = Location(file=file, line=around.line)
                hint = "promptfoo eval -o results.json"
                raise InputError("this is no result of promptfoo", location=place, hint=hint)
            case = _case_of(result, known)
            if case is None:
                imported.not_run["no case has these variables and this prompt"] += 1
                continue
            found.append(_recorded(result, case, config))
    return found


def _case_of(
    result: Mapping[str, Json], known: Mapping[str, Sequence[ImportedCase]]
) -> ImportedCase | None:
    """The case of a result, of cases by their variables."""
    test, prompt = result.get("testCase"), result.get("prompt")
    variables = test.get("vars") if isinstance(test, dict) else None
    said = prompt if isinstance(prompt, dict) else {}
    same = known.get(_key(variables or {})) or known.get(_key(result.get("vars") or {})) or ()
    labels, raw = (said.get("label"), said.get("raw")), str(said.get("raw"))
    with contextlib.suppress(InputError):
        raw = "\n".join(parted(raw, {}))
    asserts = test.get("assert") if isinstance(test, dict) else None
    wanted = _key(asserts or [])
    by_prompt = [
        case for case in same if case.prompt.label in labels or case.prompt.raw in labels
    ] or [case for case in same if f"{case.system}\n{case.question}".strip() == raw.strip()]
    exact = [case for case in by_prompt if _key([one.value for one in case.test.asserts]) == wanted]
    return next(iter(exact or by_prompt), None)


def _key(value: Json | Mapping[str, Json]) -> str:
    return json.dumps(value, sort_keys=True)


def _recorded(result: Mapping[str, Json], case: ImportedCase, config: Config) -> RecordedTest:
    response, provider = result.get("response"), result.get("provider")
    output = response.get("output") if isinstance(response, dict) else None
    said = provider if isinstance(provider, dict) else {}
    name = str(said.get("label") or said.get("id") or "model")
    grading = result.get("gradingResult")
    parts = grading.get("componentResults") if isinstance(grading, dict) else None
    cost, took = result.get("cost"), result.get("latencyMs")
    passed = result.get("success")
    return RecordedTest(
        case=case,
        model=_directory(config.providers.get(name) or model_of(name) or name),
        output=output if isinstance(output, str) or output is None else json.dumps(output),
        passed=passed if isinstance(passed, bool) else None,
        parts=tuple(_part(p) for p in parts if isinstance(p, dict))
        if isinstance(parts, list)
        else (),
        usage=RunUsage(
            cost_usd=float(cost) if isinstance(cost, int | float) else None,
            seconds=took / 1_000 if isinstance(took, int | float) else None,
        ),
    )


_WORDS = re.compile(r"(?!\.)[\w:@+.-]+(?:/(?!\.)[\w:@+.-]+)*", re.ASCII)


def _directory(name: str) -> str:
    """A name that is a directory below the recordings, and leads nowhere else."""
    if len(name) <= _LONGEST_NAME and _WORDS.fullmatch(name) and "/.." not in f"/{name}":
        return name
    return re.sub(r"[^\w:@+-]+", "-", name, flags=re.ASCII).strip("-")[:_LONGEST_NAME] or "model"


_LONGEST_NAME = 100


def _part(part: Mapping[str, Json]) -> tuple[RecordedResult, str]:
    said, passed, score = part.get("assertion"), part.get("pass"), part.get("score")
    kind = said.get("type") if isinstance(said, dict) else ""
    result = RecordedResult(
        name=str(kind or ""),
        score=float(score) if isinstance(score, int | float) else None,
        passed=passed if isinstance(passed, bool) else None,
    )
    return result, str(part.get("reason") or "")


async def replay(imported: ImportedTests, recorded: Sequence[RecordedTest]) -> None:
    """Grade what was recorded again, and note how that agrees, for each type of assertion."""
    found: dict[str, Replay] = {}
    verdicts: dict[str, list[tuple[bool, bool]]] = {}
    for one in recorded:
        name = f"{one.case.id} ({one.model})"
        if one.output is None:
            imported.not_run["the provider gave no answer"] += 1
            continue
        trace = Trace(steps=[AgentStep(content=one.output, done=True)], content=one.output)
        trace.extra[USAGE] = one.usage.to_dict()
        submission = Submission(
            answer=one.output,
            question=one.case.question,
            metadata=dict(one.case.test.variables),
            trace=trace,
        )
        ours, whole, total = _Matched(one), 0.0, 0.0
        complete = not one.case.missing
        for grader in one.case.graders:
            result = ours.of(grader.type)
            about = found.setdefault(grader.type, Replay(criterion=grader.type))
            about.recorded += result is not None
            given = await _given(grader, submission)
            if isinstance(given, str):
                complete = False
                about.not_replayed[given] += result is not None
                continue
            whole += given.score * grader.spec.weight
            total += grader.spec.weight
            if result is None or grader.spec.weight == 0:
                continue
            said, reason = result
            told = Given(given.score, given.passed, _why(reason, given.why))
            _note(about, name, said, told, verdicts, exact=not grader.doubts)
        about = found.setdefault(WHOLE, Replay(criterion=WHOLE))
        about.recorded += one.passed is not None
        if not complete:
            about.not_replayed["not all of it could be graded"] += 1
        elif one.passed is not None:
            score = whole / total if total else 0.0
            given = Given(score, score >= one.case.threshold - _ROUNDING)
            _note(about, name, RecordedResult(name="", passed=one.passed), given, verdicts)
    for kind, pairs in verdicts.items():
        found[kind].kappa = kappa_of(pairs)
    imported.replays = [one for one in found.values() if one.recorded]
    imported.replays.sort(key=lambda one: one.criterion == WHOLE)


_ROUNDING = 1e-9


def _why(theirs: str, ours: str) -> str:
    """What promptfoo and what we say of an assertion, each cut to a line."""
    said = (("promptfoo", theirs), ("assay", ours))
    return "; ".join(f"{who}: {' '.join(text.split())[:200]}" for who, text in said if text)


def _note(
    about: Replay,
    name: str,
    said: RecordedResult,
    given: Given,
    verdicts: dict[str, list[tuple[bool, bool]]],
    *,
    exact: bool = False,
) -> None:
    is_verdict = given.passed is not None and said.passed is not None
    result = RecordedResult(
        name=said.name,
        passed=said.passed if is_verdict else None,
        score=None if is_verdict else said.score,
    )
    compare(about, name, result, given, exact=exact)
    if given.passed is not None and said.passed is not None:
        verdicts.setdefault(about.criterion, []).append((given.passed, said.passed))


class _Matched:
    """What was recorded for the assertions of a test: each type's in their order."""

    def __init__(self, one: RecordedTest) -> None:
        self._waiting: dict[str, list[tuple[RecordedResult, str]]] = {}
        for result, reason in one.parts:
            self._waiting.setdefault(result.name, []).append((result, reason))

    def of(self, kind: str) -> tuple[RecordedResult, str] | None:
        """The next of a type; None where there is no more."""
        waiting = self._waiting.get(kind)
        return waiting.pop(0) if waiting else None


async def _given(grader: ImportedGrader, submission: Submission) -> Given | str:
    """What an assertion's grader gives, or why that cannot be said."""
    if grader.spec.type in ("trace", "tool_correctness") and grader.type not in OF_TRACES:
        return "results hold no calls of tools"
    try:
        node = await grade_alone(grader.spec, submission)
    except AssayError as error:
        return str(error)
    if node.value is None:
        return node.reason or node.status
    said = (node.metadata or {}).get("decided")
    why = str(said) if said else node.reason
    passed = node.value == 1.0 if node.passed is None else node.passed
    return Given(node.value, passed if grader.is_verdict else None, why)
