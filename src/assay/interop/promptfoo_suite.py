"""From promptfoo's tests to cases of ours, their files, and a replay of recorded results."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from assay.documents import parse_document
from assay.errors import InputError, SandboxError
from assay.graders.function import validate_function
from assay.graders.spec import GraderSpec, read_spec
from assay.graders.usage import RunUsage
from assay.interop.openai_read import RecordedResult
from assay.interop.openai_replay import Replay
from assay.interop.openai_suite import Fidelity
from assay.interop.promptfoo_graders import Declaration, asked_of, declared
from assay.interop.promptfoo_read import (
    Config,
    ConfigPart,
    Left,
    PromptfooTest,
    PromptText,
    model_of,
    number_of,
    provider_of,
    rendered,
)
from assay.interop.writing import files_below, new_directory, tidy
from assay.registry.files import yaml_text
from assay.scoring.json_safe import Json
from assay.tasks.case import load_cases
from assay.types import Submission
from assay.types.codec import Problem

_LONGEST_ID = 60
_NOTHING: Declaration = {"type": "regex_match", "name": "answered", "pattern": r"(?s)\A"}
"""What a test without assertions asks for: that there is an answer."""
_CHANGED = frozenset({"transform", "postprocess"})
"""Options of a test by which another text than the answer is graded."""
_NOT_OF_TESTS = _CHANGED | {"assertScoringFunction", "providerOutput"}
_OF_TESTS = frozenset(
    {
        "description",
        "disableConversationVar",
        "disableDefaultAsserts",
        "disableVarExpansion",
        "metadata",
        "prefix",
        "prompts",
        "provider",
        "providers",
        "rubricPrompt",
        "runSerially",
        "suffix",
        "threshold",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedGrader:
    """An assertion as a grader.

    Attributes:
        type: Its type over there.
        spec: The grader.
        declaration: As YAML declares it.
        doubts: Why it may decide otherwise.
        is_verdict: Whether it passes or fails by itself.
    """

    type: str
    spec: GraderSpec
    declaration: Declaration
    doubts: tuple[str, ...]
    is_verdict: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedCase:
    """A test with a prompt, as a case.

    Attributes:
        id: Its id, and its directory.
        test: The test.
        prompt: The prompt.
        question: The prompt with the variables filled in, as the model is asked.
        system: The standing instructions before it.
        graders: Its graders.
        missing: What of it is not carried over.
        threshold: Reward from which it passes.
        models: Models that work on it.
    """

    id: str
    test: PromptfooTest
    prompt: PromptText
    question: str
    system: str
    graders: tuple[ImportedGrader, ...]
    missing: tuple[Left, ...]
    threshold: float
    models: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedTest:
    """A result: what a provider said to a test, and what was made of it.

    Attributes:
        case: The case that it belongs to.
        model: The model, as it is named here; else the provider.
        output: What it said; None where there was an error.
        passed: Whether it passed; None where that is not said.
        parts: What was made of each assertion, in their order.
        usage: What it cost and how long it took.
    """

    case: ImportedCase
    model: str
    output: str | None
    passed: bool | None
    parts: tuple[tuple[RecordedResult, str], ...]
    usage: RunUsage


@dataclass(slots=True, repr=False)  # asyncio writes out what a task returned, to throw it away
class ImportedTests:
    """What a configuration became.

    Attributes:
        cases: The cases.
        left: What is not carried over.
        replays: How the replay of results agrees, by type of assertion.
        not_run: Results that belong to no case, by reason.
    """

    cases: list[ImportedCase] = field(default_factory=list[ImportedCase])
    left: list[Left] = field(default_factory=list[Left])
    replays: list[Replay] = field(default_factory=list[Replay])
    not_run: Counter[str] = field(default_factory=Counter[str])

    def table(self) -> list[tuple[str, str, int, Fidelity, str]]:
        """Types of assertions: over there, here, how many, how they carry over, and why."""
        seen: dict[int, ImportedGrader] = {id(g): g for case in self.cases for g in case.graders}
        rows = Counter((g.type, g.spec.type, g.doubts) for g in seen.values())
        return [
            (theirs, ours, number, "approximate" if doubts else "exact", "; ".join(doubts))
            for (theirs, ours, doubts), number in rows.items()
        ]

    def to_dict(self) -> dict[str, Json]:
        """It as plain JSON."""
        return {
            "cases": [case.id for case in self.cases],
            "assertions": [
                {"type": theirs, "kind": ours, "count": n, "fidelity": fidelity, "note": note}
                for theirs, ours, n, fidelity, note in self.table()
            ],
            "left": [
                {"place": str(one.place), "what": one.what, "hint": one.hint} for one in self.left
            ],
            "replay": [one.to_dict() for one in self.replays],
            "not_replayed": dict(self.not_run),
        }


async def cases_of(config: Config) -> ImportedTests:
    """Make cases of a configuration's tests and prompts; functions are looked at in the sandbox."""
    found = ImportedTests(left=[*config.left])
    names: Counter[str] = Counter()
    checked: dict[str, str] = {}  # functions, with what is wrong with each
    for test in config.tests:
        graders, threshold, missing = await _graders(test, checked)
        missing = [*test.missing, *missing]
        found.left += missing
        if not graders and (missing or test.asserts):
            found.left.append(Left(test.place, "no case is written: nothing of it carries over"))
            continue
        if not any(one.spec.weight > 0 for one in graders):
            if not graders:
                what = "it has no assertion: any answer passes"
                hint = "replace the grader 'answered'"
                found.left.append(Left(test.place, what, hint, is_note=True))
            graders = [*graders, _imported(_NOTHING, "(none)", test, ())]
        for prompt in _prompts(config, test):
            try:
                system, question = _asked(prompt, test)
            except InputError as error:
                found.left.append(Left(prompt.place, f"a prompt: {error.message}", error.hint))
                continue
            name = _slug(test)
            names[name] += 1
            found.cases.append(
                ImportedCase(
                    id=name if names[name] == 1 else f"{name}-{names[name]}",
                    test=test,
                    prompt=prompt,
                    question=question,
                    system=system,
                    graders=tuple(graders),
                    missing=tuple(missing),
                    threshold=threshold,
                    models=tuple(_models(config, test)),
                )
            )
    found.left = list(dict.fromkeys(found.left))
    return found


def _slug(test: PromptfooTest) -> str:
    words = test.description or " ".join(str(value) for value in test.variables.values())
    plain = re.sub(r"[^a-z0-9]+", "-", words[:500].lower())[:_LONGEST_ID].strip("-")
    return plain or "test"


def _prompts(config: Config, test: PromptfooTest) -> list[PromptText]:
    said = test.options.get("prompts")
    wanted = [str(one.value).removeprefix("file://") for one in said.items()] if said else []
    chosen = [one for one in config.prompts if one.label in wanted or one.raw in wanted]
    return chosen or config.prompts


def _models(config: Config, test: PromptfooTest) -> list[str]:
    said = test.options.get("providers") or test.options.get("provider")
    if said is None:
        return config.models
    names = [provider_of(one)[0] for one in said.items()]
    found = (config.providers.get(name) or model_of(name) for name in names)
    return [name for name in found if name] or config.models


def _asked(prompt: PromptText, test: PromptfooTest) -> tuple[str, str]:
    """Standing instructions and question of a prompt: a text, or turns of a conversation.

    Raises:
        InputError: For a prompt that cannot be put so.
    """
    before, after = (test.options.get(name) for name in ("prefix", "suffix"))
    raw = f"{before.value if before else ''}{prompt.raw}{after.value if after else ''}"
    return parted(raw, test.variables)


def parted(raw: str, variables: Mapping[str, Json]) -> tuple[str, str]:
    """Standing instructions and question of a prompt with its variables filled in.

    Raises:
        InputError: For a prompt that cannot be put so.
    """
    turns = _turns(raw)
    if turns is None:
        text = rendered(raw, variables)
        if not text.strip():
            raise InputError("it is empty")
        return "", text
    said: dict[str, list[str]] = {"system": [], "user": []}
    for turn in turns:
        role = "system" if turn.get("role") == "developer" else str(turn.get("role"))
        content = turn.get("content")
        parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
        texts = [p.get("text") for p in parts if isinstance(p, dict)]
        if role not in said or (role == "system" and said["user"]) or len(said["user"]) > 0:
            raise InputError("a conversation with earlier turns", hint="task.turns of the case")
        if len(texts) != len(parts) or not all(isinstance(text, str) for text in texts):
            raise InputError("only text is asked, and no images or sounds")
        said[role].append(rendered("".join(map(str, texts)), variables))
    if not said["user"]:
        raise InputError("no user says anything in it")
    return "\n\n".join(said["system"]), said["user"][0]


def _turns(raw: str) -> list[dict[str, Json]] | None:
    """The turns of a prompt that is a conversation in JSON or YAML; None of any other."""
    if not re.match(r"\s*(\[|-\s+role:)", raw):
        return None
    try:
        data = parse_document(raw).data
    except InputError:
        return None
    turns = (
        [one for one in data if isinstance(one, dict) and "role" in one]
        if isinstance(data, list)
        else []
    )
    return turns if isinstance(data, list) and turns and len(turns) == len(data) else None


# --- graders ---


async def _graders(
    test: PromptfooTest, checked: dict[str, str]
) -> tuple[list[ImportedGrader], float, list[Left]]:
    left: list[Left] = []
    for name, said in test.options.items():
        if name in _NOT_OF_TESTS:
            hint = "an answer is graded as it is given: a function can take it apart"
            if name == "assertScoringFunction":
                hint = "the score is the weighted mean here: expect.pass_threshold of the case"
            left.append(Left(said.place, f"{name!r} has no counterpart", hint))
        elif name not in _OF_TESTS and not name.startswith("_"):
            left.append(Left(said.place, f"{name[:60]!r} of a test has no counterpart"))
    if _CHANGED & {*test.options}:
        return [], 1.0, left
    threshold, asserts = test.threshold, list(test.asserts)
    if len(asserts) == 1 and threshold is None and asserts[0].parts:
        threshold = number_of(asserts[0].get("threshold"))
    if threshold is not None and threshold > 1.0:
        left.append(Left(test.place, f"no score reaches its threshold of {threshold:g}"))
        return [], 1.0, left
    found: list[ImportedGrader] = []
    for said, weight in _flat(asserts, alone=len(asserts) == 1, left=left):
        try:
            made = await _grader(said, weight, test, checked, is_verdict=threshold is None)
        except InputError as error:
            data = said.value if isinstance(said.value, dict) else {}
            what = f"{str(data.get('type'))[:60]}: {error.message}"
            left.append(Left(said.place, what, error.hint))
        else:
            found.append(made)
    return found, 1.0 if threshold is None else threshold, left


def _flat(
    asserts: Sequence[ConfigPart], *, alone: bool, left: list[Left]
) -> Iterator[tuple[ConfigPart, float]]:
    """The assertions with their weights, those of sets with their share of the set's."""
    for said in asserts:
        weight = number_of(said.get("weight"))
        whole = 1.0 if weight is None else weight
        if not said.parts:
            yield said, whole
        elif not alone and number_of(said.get("threshold")) is not None:
            hint = "a test of its own with a 'threshold'"
            left.append(Left(said.place, "an assert-set with a threshold beside others", hint))
        else:
            inner = list(_flat(said.parts, alone=False, left=left))
            total = sum(share for _, share in inner) or 1.0
            yield from ((one, whole * share / total) for one, share in inner)


async def _grader(
    said: ConfigPart,
    weight: float,
    test: PromptfooTest,
    checked: dict[str, str],
    *,
    is_verdict: bool,
) -> ImportedGrader:
    judge = test.options.get("provider") if "assert" not in test.options else None
    asked = asked_of(said, test.variables, is_verdict=is_verdict, judge=judge)
    declaration = declared(said, asked)
    data = said.value if isinstance(said.value, dict) else {}
    metric = data.get("metric")
    if isinstance(metric, str):
        declaration = {"type": declaration["type"], "name": metric, **declaration}
    if weight != 1.0:
        declaration = {**declaration, "weight": weight}
    kind = f"{'not-' if asked.inverse else ''}{asked.type}"
    made = _imported(declaration, kind, test, asked.doubts, is_verdict=is_verdict)
    if isinstance(source := declaration.get("source"), str):
        if source not in checked:
            checked[source] = await _fault_of(source)
        if checked[source]:
            raise InputError(checked[source], hint="functions have the standard library alone")
    return made


def _imported(
    declaration: Declaration,
    kind: str,
    test: PromptfooTest,
    doubts: Sequence[str],
    *,
    is_verdict: bool = True,
) -> ImportedGrader:
    problems: list[Problem] = []
    row = Submission(metadata=dict(test.variables))
    spec = read_spec(declaration, (), problems, base=".", row=row)
    if spec is None:
        first = problems[0]
        place = f"{first.field}: " if first.field else ""
        raise InputError(f"{place}{first.message}", hint=first.hint)
    return ImportedGrader(
        type=kind,
        spec=spec,
        declaration=declaration,
        doubts=tuple(doubts),
        is_verdict=is_verdict,
    )


async def _fault_of(source: str) -> str:
    """What is wrong with a function, looked at and not run; "" also where there is no sandbox."""
    try:
        report = await validate_function(source, runs=False)
    except SandboxError:
        return ""  # it is looked at when it is graded with
    return next((check.message for check in report.checks if not check.passed), "")


# --- files ---

_HEAD = """\
# From {place} by `assay import promptfoo`.
"""


def write_cases(
    imported: ImportedTests, recorded: Sequence[RecordedTest], directory: str, *, trials: int
) -> list[str]:
    """Write cases, each into a directory of its own, with what was recorded for them.

    Returns:
        Paths of what was written, relative to the directory, sorted.

    Raises:
        InputError: If the directory is not empty or cannot be written.
    """
    with new_directory(directory) as whole:
        for case in imported.cases:
            answers = {
                one.model: one.output
                for one in reversed(recorded)
                if one.case is case and one.output is not None
            }
            place = whole / case.id
            place.mkdir()
            text = _case_text(case, list(answers), trials)
            (place / "case.yaml").write_text(text, encoding="utf-8", newline="\n")
            for model, output in answers.items():
                (place / "recordings" / model).mkdir(parents=True)
                (place / "recordings" / model / "answer.txt").write_text(output, encoding="utf-8")
        if imported.cases:
            load_cases([str(whole)])  # nothing is written that could not be read
        return files_below(whole)


def _case_text(case: ImportedCase, recorded: Sequence[str], trials: int) -> str:
    parts = [_HEAD.format(place=_comment(str(case.test.place)))]
    if case.missing:
        parts.append("# Not carried over, so that it asks for less than it did:\n")
        parts += [f"#   {_comment(str(one))}\n" for one in case.missing]
    task: dict[str, Json] = {"prompt": tidy(case.question)}
    if case.system:
        task["system_prompt"] = tidy(case.system)
    metadata = dict(case.test.variables)
    if (said := case.test.options.get("metadata")) is not None and isinstance(said.value, dict):
        metadata = {**said.value, **metadata}
    blocks: list[dict[str, Json]] = [{"id": case.id}]
    if case.test.description:
        blocks.append({"description": case.test.description})
    if metadata:
        blocks.append({"metadata": metadata})
    blocks.append({"task": task})
    if names := list(case.models) or list(recorded):
        harness = "agent" if case.models else "replay"
        matrix: dict[str, Json] = {"harnesses": [harness], "models": list[Json](names)}
        blocks.append({"matrix": {**matrix, "trials": trials} if trials > 1 else matrix})
    blocks.append({"graders": [one.declaration for one in case.graders]})
    if case.threshold != 1.0:
        blocks.append({"expect": {"pass_threshold": min(1.0, max(0.0, case.threshold))}})
    return "".join(parts) + "\n".join(yaml_text(block) for block in blocks)


def _comment(text: str) -> str:
    """A text that stays in its comment, whatever it holds."""
    return json.dumps(text, ensure_ascii=False)[1:-1].replace('\\"', '"')
