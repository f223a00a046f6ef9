"""``ModelJudgeGrader``: the kind ``model_judge``, quality judged by one model or a jury."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, cast

from assay.errors import GraderError, InputError, ModelError
from assay.graders.judges.base import JudgeGrader, panel_of
from assay.graders.judges.criteria import Criterion, leaves
from assay.graders.judges.family import judged_model, kin
from assay.graders.judges.gate import emptiness
from assay.graders.judges.panel import Decision, Form, Opinion, Panel, poll
from assay.graders.judges.prompt import Part, Untrusted, compose, suspicions
from assay.graders.judges.rubric import Material, combined, described, judge_criteria
from assay.graders.judges.rubric_files import CRITERIA_FILES, load_rubric, read_words
from assay.graders.judges.workspace_view import NOT_SHOWN, diff_view, trace_view
from assay.graders.paths import CasePath
from assay.scoring.json_safe import Json
from assay.scoring.results import SubScore
from assay.types.submission import Workspace
from assay.types.trace import Trace

__all__ = ["ModelJudgeGrader"]

_DEFAULT_MODEL = "claude-opus-4-8"
_NEAR = 1e-9
"""How far below its threshold a score still passes: what a mean of decimals may lose."""

_SCHEMA: Mapping[str, Json] = {
    "type": "object",
    "properties": {
        "reasoning": {"type": "string"},
        "score": {"type": "number", "minimum": 0, "maximum": 1},
    },
    "required": ["reasoning", "score"],
    "additionalProperties": False,
}
_ASKED = """\
RUBRIC:
{rubric}

Score the work by the rubric alone: 1 where it is met in full, 0 where it is not met at all, and \
anything between in proportion to how much of it is met.
First the reasoning, in a few sentences that name what in the work decides; then the score, a \
number from 0 to 1."""


class ModelJudgeGrader(JudgeGrader):
    """Open-ended quality by a rubric: judged by one model, or the mean of a jury.

    The rubric is words (Markdown) for one score in [0, 1], or a file of criteria (YAML, JSON) that
    are judged one by one. Skipped: no judge of it is configured on this machine, which no work can
    change. Work without content is worth 0, and no model is asked. Whatever else keeps judges from
    a verdict is an error.
    """

    name: ClassVar[str] = "model_judge"

    @classmethod
    def check_options(cls, options: Mapping[str, Json]) -> None:
        """Refuse a rubric that cannot be read, an impossible threshold and an impossible panel."""
        super().check_options(options)
        _check_threshold(options.get("pass_threshold", 0.8))
        try:
            _Rubric.read(str(options.get("rubric", "")), str(options.get("example") or ""))
        except InputError as error:
            if not error.location.file:
                raise
            # Where a case is read, only the message is kept, and the place in the case.
            raise InputError(
                f"rubric: {error.location}: {error.message}", hint=error.hint
            ) from error

    @classmethod
    async def compute_score(
        cls,
        rubric: CasePath,
        answer: str | None = None,
        question: str | None = None,
        *,
        pass_threshold: float = 0.8,
        include_trace: bool = False,
        include_diff: bool = False,
        example: str = "",
        trace: Trace | None = None,
        workspace: Workspace | None = None,
        metadata: Mapping[str, Json] | None = None,
        **options: object,
    ) -> SubScore:
        """Judge work.

        Args:
            rubric: A file: words, or criteria; see `assay.graders.judges.rubric_files`.
            answer: What the agent said in the end.
            question: What it was asked for; shown to the judge.
            pass_threshold: Score in [0, 1] from which the work passes.
            include_trace: Whether the judge is shown what was done.
            include_diff: Whether the judge is shown what changed in the workspace.
            example: Of a file of many rubrics, the id of the one that is meant.
            trace: What was done.
            workspace: What was left, and what was given.
            metadata: Of the sample; its ``model`` is who did the work, if the trace does not say.
            **options: The panel; see `JudgeGrader`. The votes of a jury on a rubric in words are
                averaged by default.

        Raises:
            InputError: For a rubric that cannot be read, or impossible options.
            GraderError: If the workspace is to be shown, and there is none.
        """
        _check_threshold(pass_threshold)
        read = _Rubric.read(str(rubric), example)
        panel = panel_of(
            options if read.criteria else {"aggregate": "mean", **options}, model=_DEFAULT_MODEL
        )
        if why := _unasked(panel):
            return SubScore.skipped(cls.name, why)
        if include_diff and workspace is None:
            raise GraderError(
                "include_diff: there is no workspace to be shown",
                hint="grade a case, or leave it out",
            )
        told = _About.of(panel, pass_threshold, trace, metadata)
        try:
            work = await _Work.of(
                answer or "",
                question or "",
                trace=trace if include_trace else None,
                workspace=workspace if include_diff else None,
            )
        except ModelError as error:
            return SubScore.error(cls.name, str(error), metadata=told.metadata)
        if why := work.emptiness():
            evidence = {**told.metadata, "asked": False, "why": why}
            return SubScore(cls.name, 0.0, metadata=evidence, reason=why, passed=False)
        if include_trace:
            work = work.with_note_of_trace()
        if read.criteria:
            return await _by_criteria(told, read.criteria, work, panel)
        return await _by_words(told, read.words, work, panel)


def _check_threshold(given: object) -> None:
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0.0 <= given <= 1.0:
        raise InputError(f"pass_threshold must be in [0, 1], got {given!r}")


def _unasked(panel: Panel) -> str:
    """Why nobody of a panel can be asked on this machine; "" where somebody can."""
    from assay.models import current_client, unconfigured

    current_client()  # settings that cannot be read are an error, and no reason to skip
    why = [unconfigured(model) for model in (*panel.models, panel.escalate) if model]
    return "" if not all(why) else "; ".join(dict.fromkeys(why))


@dataclass(frozen=True, slots=True)
class _Rubric:
    """What is asked: words, or criteria."""

    words: str = ""
    criteria: tuple[Criterion, ...] = ()

    @classmethod
    def read(cls, path: str, example: str) -> _Rubric:
        if Path(path).suffix.lower() in CRITERIA_FILES:
            return cls(criteria=load_rubric(path, example=example))
        if example:
            raise InputError(
                "example: picks one of a file of many rubrics, and this is one in words"
            )
        return cls(words=read_words(path))


@dataclass(frozen=True, slots=True)
class _About:
    """What is kept of every judgement, and from which score it passes."""

    metadata: dict[str, Json]
    threshold: float

    @classmethod
    def of(
        cls,
        panel: Panel,
        threshold: float,
        trace: Trace | None,
        metadata: Mapping[str, Json] | None,
    ) -> _About:
        told: dict[str, Json] = {
            "model": panel.models[0],
            "models": list(panel.models),
            "threshold": threshold,
        }
        if judged := judged_model(trace, metadata):
            told["judged_model"] = judged
            if same := kin(panel.models, judged):
                told["same_family"] = list[Json](same)
        return cls(told, threshold)

    def scored(
        self, value: float, more: Mapping[str, Json], children: Sequence[SubScore], reason: str
    ) -> SubScore:
        return SubScore(
            ModelJudgeGrader.name,
            value,
            metadata={**self.metadata, **more},
            children=children,
            reason=reason,
            passed=value >= self.threshold - _NEAR,
        )

    def failed(
        self, reason: str, more: Mapping[str, Json], children: Sequence[SubScore]
    ) -> SubScore:
        return SubScore(
            ModelJudgeGrader.name,
            status="error",
            metadata={**self.metadata, **more},
            children=children,
            reason=reason,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work(Material):
    """What is judged. Its ``answer`` is all in which evidence is looked for: also the diff."""

    said: str
    diff: str | None
    trace: str | None
    note: str = ""

    @classmethod
    async def of(
        cls, answer: str, question: str, *, trace: Trace | None, workspace: Workspace | None
    ) -> _Work:
        diff = None if workspace is None else await asyncio.to_thread(diff_view, workspace)
        done = None if trace is None else await asyncio.to_thread(trace_view, trace)
        everything = "\n".join(text for text in (answer, diff, done) if text)
        return cls(answer=everything, question=question, said=answer, diff=diff, trace=done)

    def emptiness(self) -> str:
        """Why there is nothing to be judged. What was merely done is no work of its own."""
        why = emptiness(self.said)
        if not why or self.diff:
            return ""
        return why if self.diff is None else f"{why}, and no file was changed"

    def with_note_of_trace(self) -> _Work:
        """The same, where a trace was to be shown: its absence is said."""
        from dataclasses import replace

        return self if self.trace else replace(self, note="Nothing is known of how it was done.")

    def parts(self) -> list[Part]:
        parts: list[Part] = []
        if self.question:
            parts += ["What was asked for:", Untrusted("question", self.question)]
        if self.trace:
            parts += ["What was done, step by step:", Untrusted("trace", self.trace)]
        elif self.note:
            parts.append(self.note)
        if self.diff:
            said = f"What changed in the files (nothing of {NOT_SHOWN} is shown):"
            parts += [said, Untrusted("diff", self.diff)]
        elif self.diff is not None:
            parts.append("No file was changed.")
        if self.said.strip():
            parts += ["The final answer, to be graded:", Untrusted("answer", self.said)]
        else:
            parts.append("There is no final answer in words; what was left is to be graded.")
        return parts


async def _by_words(about: _About, rubric: str, work: _Work, panel: Panel) -> SubScore:
    more: dict[str, Json] = {}
    if found := suspicions(work.answer):
        more["injection_suspected"] = list(found)
    try:
        prompt = compose("score", work.parts(), _ASKED.format(rubric=rubric.strip()))
    except ModelError as error:
        return about.failed(str(error), more, ())
    decision = await poll(prompt, _FORM, panel)
    more["per_judge"] = decision.told()
    children = _votes(decision)
    if decision.error is not None:
        return about.failed(str(decision.error), more, children)
    more["agreement"] = decision.agreement
    return about.scored(cast("float", decision.value), more, children, decision.reason)


def _read_score(data: Mapping[str, Json]) -> Opinion:
    return Opinion("", float(cast("float", data["score"])), str(data["reasoning"]))


_FORM = Form("score", _SCHEMA, _read_score)


def _votes(decision: Decision) -> list[SubScore]:
    """A node for each vote."""
    nodes: list[SubScore] = []
    for vote in decision.votes:
        name = f"{vote.model} #{vote.repeat + 1}" if vote.repeat else vote.model
        if vote.opinion is None or vote.opinion.value is None:
            nodes.append(SubScore.error(name, str(vote.error)))
        else:
            nodes.append(SubScore(name, vote.opinion.value, reason=vote.opinion.reason))
    return nodes


async def _by_criteria(
    about: _About, criteria: Sequence[Criterion], work: _Work, panel: Panel
) -> SubScore:
    judged = await judge_criteria(criteria, work, panel)
    total = combined(criteria, judged.decisions)
    pairs = list(zip(leaves(criteria), judged.decisions, strict=True))
    more: dict[str, Json] = {"criteria": [described(*pair) for pair in pairs], "raw": total.raw}
    if judged.suspicions:
        more["injection_suspected"] = list(judged.suspicions)
    children = [_criterion(*pair) for pair in pairs]
    errors = [one.error for one in judged.decisions if one.error is not None]
    if judged.captured or errors:
        told = "; ".join(dict.fromkeys(map(str, errors)))
        many = f"{len(errors)} of {len(pairs)} criteria were not judged: {told}"
        return about.failed(judged.captured or many, more, children)
    if total.value is None:
        return about.failed("no criterion applies", more, children)
    reason = f"required and not met: {total.failed}" if total.failed else ""
    return about.scored(total.value, more, children, reason)


def _criterion(criterion: Criterion, decision: Decision) -> SubScore:
    if decision.error is not None:
        return SubScore.error(criterion.label, str(decision.error), weight=criterion.weight)
    if decision.value is None:
        return SubScore.skipped(criterion.label, decision.reason, weight=criterion.weight)
    reason = decision.reason
    return SubScore(criterion.label, decision.value, criterion.weight, reason=reason)
