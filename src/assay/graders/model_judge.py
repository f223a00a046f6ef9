"""``ModelJudgeGrader``: the kind ``model_judge``, quality judged by one model or a jury."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, cast

from assay.errors import GraderError, InputError, ModelError
from assay.graders.judges.criteria import Criterion, leaves
from assay.graders.judges.dialogue import Dialogue, DialogueJudge, Spoken
from assay.graders.judges.fence import Prompt, asking, compose
from assay.graders.judges.gate import Unasked
from assay.graders.judges.panel import TEXT, Aggregate, Form, Opinion, Panel, object_schema
from assay.graders.judges.rubric import judge_criteria, rubric_node
from assay.graders.judges.rubric_files import (
    CRITERIA_FILES,
    load_rubric,
    preset_file,
    read_words,
    wrong_words,
)
from assay.graders.judges.votes import PanelDecision, is_pass, node_of, poll, probed
from assay.graders.judges.work import JudgedWork, OverlongError, judged_model, kin
from assay.graders.paths import CasePath
from assay.scoring.json_safe import Json, noted
from assay.scoring.results import SubScore
from assay.types.codec import Share
from assay.types.submission import Workspace
from assay.types.thread import StringThread
from assay.types.trace import Trace

__all__ = ["ModelJudgeGrader"]

_SCHEMA = object_schema(reasoning=TEXT, score={"type": "number", "minimum": 0, "maximum": 1})
_ASKED = """\
{rubric}

Score the work by the rubric alone: 1 where it is met in full, 0 where it is not met at all, and \
anything between in proportion to how much of it is met.
First the reasoning, in a few sentences that name what in the work decides; then the score, a \
number from 0 to 1."""


@dataclass(frozen=True, kw_only=True)
class ModelJudgeGrader(DialogueJudge):
    """Open-ended quality by a rubric: judged by one model, or the mean of a jury.

    The rubric is words (Markdown) for one score in [0, 1], or a file of criteria (YAML, JSON) that
    are judged one by one. Skipped: no judge of it is configured on this machine, which no work can
    change. Work without content is worth 0, and no model is asked. Whatever else keeps judges from
    a verdict is an error. The votes of a jury on a rubric in words are averaged by default.

    Attributes:
        rubric: A file: words, or criteria; see `assay.graders.judges.rubric_files`.
        words: Instead of a file, the rubric itself, in words.
        preset: Instead of a file, a rubric that comes with assay: ``solves_or_games`` asks
            whether a change does the work or games its judge. The judge is shown the diff.
        pass_threshold: Score in [0, 1] from which the work passes.
        include_trace: Whether the judge is shown what was done.
        include_diff: Whether the judge is shown what changed in the workspace.
        example: Of a file of many rubrics, the id of the one that is meant.
        canary: Share of answers, in [0, 1], on which the judge itself is probed. Those that show a
            pattern of attack are always among them, unless it is 0.
    """

    name: ClassVar[str] = "model_judge"
    default_model: ClassVar[str] = "claude-opus-4-8"

    rubric: CasePath = ""
    words: str = ""
    preset: str = ""
    pass_threshold: Share = 0.8
    include_trace: bool = False
    include_diff: bool = False
    example: str = ""
    canary: Share = 0.02

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.per_turn is not None and (self.include_diff or self.include_trace or self.preset):
            raise InputError(
                "per_turn: a turn is judged by what is said, and the diff and the trace are of all",
                hint="leave out include_diff, include_trace and preset, or judge them in a grader "
                "of their own",
            )
        try:
            self._rubric()
        except InputError as error:
            if not error.location.file:
                raise
            # Where a case is read, only the message is kept, and the place in the case.
            message = f"rubric: {error.location}: {error.message}"
            raise InputError(message, hint=error.hint) from error

    @property
    def file(self) -> str:
        """The file that the rubric is in; "" where it is given in words."""
        given = [one for one in ("rubric", "words", "preset") if getattr(self, one)]
        if not given:
            hint = "a file, or 'words' or 'preset' instead"
            raise InputError("model_judge needs 'rubric'", hint=hint)
        if len(given) > 1:
            raise InputError(f"{given[1]}: there is {given[0]!r} too", hint="leave one of them out")
        if self.words:
            return ""
        return str(self.rubric or preset_file(self.preset))

    @property
    def default_aggregate(self) -> Aggregate:
        """The mean of the votes on a rubric in words."""
        return "majority" if _is_criteria(self.file) else "mean"

    def _rubric(self) -> str | tuple[Criterion, ...]:
        """What is asked: words, or criteria. Read each time: the file may be another one by now."""
        if _is_criteria(self.file):
            return load_rubric(self.file, example=self.example)
        if self.example:
            raise InputError(
                "example: picks one of a file of many rubrics, and this is one in words"
            )
        if not self.words:
            return read_words(self.file)
        if (error := wrong_words(self.words)) is not None:
            raise InputError(f"words: {error.message}", hint=error.hint)
        return self.words

    async def score(
        self,
        answer: str | None = None,
        question: str | None = None,
        trace: Trace | None = None,
        workspace: Workspace | None = None,
        *,
        metadata: Mapping[str, Json] | None = None,
        thread: StringThread | None = None,
    ) -> SubScore:
        """Judge work, or the turns of a conversation.

        Args:
            answer: What the agent said in the end; what ends ``thread`` by default.
            question: What it was asked for; shown to the judge.
            trace: What was done.
            workspace: What was left, and what was given.
            metadata: Of the sample; its ``model`` is who did the work, if the trace does not say.
            thread: The conversation; shown to the judge.

        Raises:
            InputError: For a rubric that cannot be read.
            GraderError: If the workspace is to be shown, and there is none.
        """
        rubric, include_diff = self._rubric(), self.include_diff or bool(self.preset)
        if why := _unasked(self.panel):
            return SubScore.skipped(self.name, why)
        if include_diff and workspace is None:
            raise GraderError(
                "include_diff: there is no workspace to be shown",
                hint="grade a case, or leave it out",
            )
        sees_work = include_diff or (self.include_trace and trace is not None)
        if answer is None and thread is None and sees_work:
            answer = ""

        async def judge(spoken: Spoken) -> SubScore:
            panel, seen = self.looking_at(spoken.pictures, workspace if include_diff else None)
            told = _About.of(panel, self.pass_threshold, trace, metadata)
            try:
                work = await JudgedWork.of(
                    spoken,
                    trace=trace if self.include_trace else None,
                    workspace=workspace if include_diff else None,
                )
            except OverlongError as error:
                return told.nothing(Unasked(str(error), is_overlong=True))
            except ModelError as error:
                return told.node(PanelDecision(error=error))
            told.metadata.update(seen)
            if (found := work.unasked()) and panel.leaves(found):
                return told.nothing(found)
            if self.include_trace:
                work = work.with_note_of_trace()
            told.metadata.update(work.to_json())
            if isinstance(rubric, str):
                return await _by_words(told, rubric, work, panel, self.canary)
            return await _by_criteria(told, rubric, work, panel, self.canary)

        about = _About.of(self.panel, self.pass_threshold, trace, metadata)
        return await self.judged(
            Dialogue.of(answer, question, thread),
            judge,
            about.metadata,
            questions=1 if isinstance(rubric, str) else sum(1 for _ in leaves(rubric)),
            passes=about.passes,
        )


def _is_criteria(file: str) -> bool:
    return Path(file).suffix.lower() in CRITERIA_FILES


def _unasked(panel: Panel) -> str:
    """Why nobody of a panel can be asked on this machine; "" where somebody can."""
    from assay.models import current_client, unconfigured

    current_client()  # settings that cannot be read are an error, and no reason to skip
    why = [unconfigured(model) for model in (*panel.models, panel.escalate) if model]
    return "" if not all(why) else "; ".join(dict.fromkeys(why))


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
        judged = judged_model(trace, metadata)
        same = kin(panel.models, judged) if judged else ()
        return cls(told | noted(judged_model=judged, same_family=list(same)), threshold)

    def node(
        self,
        decision: PanelDecision,
        more: Mapping[str, Json] | None = None,
        children: Sequence[SubScore] = (),
    ) -> SubScore:
        kept = {**self.metadata, **(more or {})}
        passed = None if decision.value is None else self.passes(decision.value)
        return node_of(ModelJudgeGrader.name, decision, kept, children=children, passed=passed)

    def nothing(self, found: Unasked) -> SubScore:
        return found.node(ModelJudgeGrader.name, self.metadata, passed=False)

    def passes(self, value: float) -> bool:
        return is_pass(value, self.threshold)


async def _by_words(
    about: _About, rubric: str, work: JudgedWork, panel: Panel, canary: float
) -> SubScore:
    def write(asked: str) -> Prompt:
        shown, said = asking("RUBRIC", asked)
        return compose("score", [*work.parts(), *shown], _ASKED.format(rubric=said))

    decision, probe, refusal = await probed(
        poll(lambda: write(rubric), _FORM, panel),
        write,
        _FORM,
        panel,
        answer=work.answer,
        asked=rubric,
        share=canary,
        is_suspicious=bool(work.suspicions),
        what="work",
    )
    more: dict[str, Json] = {"per_judge": decision.votes_to_list()}
    if probe is not None:
        more["probe"] = probe.votes_to_list()
    children = _votes(decision)
    decision = replace(decision, error=decision.error or refusal)
    if decision.error is None:
        more["agreement"] = decision.agreement
    return about.node(decision, more, children)


def _read_score(data: Mapping[str, Json]) -> Opinion:
    return Opinion("", float(cast("float", data["score"])), str(data["reasoning"]))


_FORM = Form("score", _SCHEMA, _read_score)


def _votes(decision: PanelDecision) -> list[SubScore]:
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
    about: _About, criteria: Sequence[Criterion], work: JudgedWork, panel: Panel, canary: float
) -> SubScore:
    judged = await judge_criteria(criteria, work, panel, canary=canary)
    node = rubric_node(ModelJudgeGrader.name, judged, about.metadata)
    if node.status == "skipped":  # a judge may not talk itself out of this kind
        talked = ModelError(node.reason, kind="unbelievable")
        return about.node(PanelDecision(error=talked), node.metadata, node.children or ())
    return node if node.value is None else replace(node, passed=about.passes(node.value))
