"""`BinaryJudgeGrader`: the kind ``binary_judge``, PASS or FAIL by a criterion in plain words."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, cast

from assay.errors import InputError
from assay.graders.judges.base import JudgeGrader, panel_of
from assay.graders.judges.binary import BinaryJudge, Judgement
from assay.graders.judges.canary import check_canary, is_probed, refuted
from assay.graders.judges.examples import MAX_SHOWN, read_examples
from assay.graders.judges.gate import emptiness
from assay.graders.judges.panel import Panel
from assay.graders.judges.prompt import suspicions
from assay.graders.judges.template_context import conversation
from assay.scoring.json_safe import Json, plain
from assay.scoring.results import SubScore
from assay.types.thread import StringThread

__all__ = ["BinaryJudgeGrader", "judge_of"]

_OPTIONS = ("criteria", "examples", "system_template", "user_template", "template_variables",
            "allow_na", "few_shot")  # fmt: skip


class BinaryJudgeGrader(JudgeGrader):
    """PASS (1.0) or FAIL (0.0) by one criterion, judged by a model.

    An answer without content fails, and no model is asked. Where the criterion does not apply,
    and the author allows a judge to say so, the score is skipped.
    """

    name: ClassVar[str] = "BinaryJudgeGrader"

    @classmethod
    def check_options(cls, options: Mapping[str, Json]) -> None:
        """Refuse examples and templates that are none."""
        super().check_options(options)
        check_canary(options.get("canary", 0.0))
        judge_of(options)

    @classmethod
    def record(cls, parameters: Mapping[str, object]) -> dict[str, Json]:
        """As of every judge; the examples stand in the grader's definition."""
        return super().record({k: v for k, v in parameters.items() if k != "examples"})

    @classmethod
    async def compute_score(
        cls,
        criteria: str,
        answer: str | None = None,
        question: str | None = None,
        thread: StringThread | None = None,
        metadata: Mapping[str, Json] | None = None,
        *,
        examples: list[dict[str, Json]] | None = None,
        system_template: str = "",
        user_template: str = "",
        template_variables: dict[str, Json] | None = None,
        feedback_key: str = "",
        allow_na: bool = False,
        few_shot: int = MAX_SHOWN,
        canary: float = 0.02,
        openers: bool = True,
        **options: object,
    ) -> SubScore:
        """Judge an answer.

        Args:
            criteria: What makes it pass, in plain words.
            answer: What is judged; what ends ``thread`` by default.
            question: What was asked for, where there is no thread.
            thread: The conversation.
            metadata: What belongs to the sample; templates may show it.
            examples: Answers that people decided about: ``{"input", "output", "pass",
                "reasoning"}`` each.
            system_template: Handlebars, behind what every judge is told.
            user_template: Handlebars; assay's own by default.
            template_variables: Variables of one's own for the templates.
            feedback_key: The metric that the score is written to; kept with the score.
            allow_na: Whether a judge may say that the criterion does not apply.
            few_shot: How many examples it is shown, at most; 0 to 8.
            canary: Share of answers, in [0, 1], on which the judge itself is probed. Those that
                show a pattern of attack are always among them, unless it is 0.
            openers: Whether the mere beginning of an answer ("Solution:") fails, too.
            **options: The panel; see `JudgeGrader`.

        Raises:
            InputError: For impossible options.
        """
        panel = panel_of(options)
        check_canary(canary)
        judge = judge_of(
            {
                "criteria": criteria,
                "examples": cast("Json", examples),
                "system_template": system_template,
                "user_template": user_template,
                "template_variables": template_variables,
                "allow_na": allow_na,
                "few_shot": few_shot,
            }
        )
        asked = conversation(answer, question, thread, metadata)
        completion = asked.completion() or ""
        kept: dict[str, Json] = {"model": panel.models[0], "models": list(panel.models)}
        if feedback_key:
            kept["feedback_key"] = feedback_key
        if why := emptiness(completion, openers=openers):
            return SubScore(
                cls.name, 0.0, metadata={**kept, "verdict": "FAIL", "asked": False}, reason=why
            )
        if found := _suspicions(asked):
            kept["injection_suspected"] = found
        if is_probed(completion, criteria, canary, is_suspicious=bool(found)):
            return _scored(cls.name, await _probed(judge, asked, panel, kept), kept)
        return _scored(cls.name, await judge.judge(asked, panel), kept)


def _suspicions(thread: StringThread) -> list[Json]:
    """Patterns of attack in a conversation: whatever of it a template may show."""
    found = (name for turn in thread.turns for name in suspicions(turn.content))
    return list[Json](dict.fromkeys(found))


async def _probed(
    judge: BinaryJudge, thread: StringThread, panel: Panel, kept: dict[str, Json]
) -> Judgement:
    """The judgement, or why the judge is not believed; what it said of a made-up word is kept."""
    judgement, probe = await asyncio.gather(
        judge.judge(thread, panel), BinaryJudge.probe(thread, panel)
    )
    kept["probe"] = probe.votes_to_list()
    if judgement.decision.error is not None:
        return judgement
    error = refuted(probe, panel, is_suspicious="injection_suspected" in kept)
    return replace(judgement, decision=replace(judgement.decision, error=error))


_KEPT: dict[str, BinaryJudge] = {}


def judge_of(options: Mapping[str, Json]) -> BinaryJudge:
    """The judge that options describe; it is the same for all answers of a dataset.

    Args:
        options: By the names of `BinaryJudgeGrader`; others are not looked at.

    Raises:
        InputError: For impossible ones; the message begins with the option.
    """
    options = {name: options[name] for name in _OPTIONS if options.get(name) is not None}
    key = repr(sorted(options.items()))
    if (known := _KEPT.get(key)) is not None:
        return known
    own = options.get("template_variables")
    if own is not None and not isinstance(own, dict):
        raise InputError("template_variables: must be a mapping of names to values")
    for name in own or {}:
        if not name.isidentifier():
            raise InputError(
                f"template_variables: {name!r:.60} is no name of a variable",
                hint="letters, digits and _",
            )
    judge = BinaryJudge(
        criteria=_text(options, "criteria"),
        examples=read_examples(options.get("examples")),
        system_template=_text(options, "system_template"),
        user_template=_text(options, "user_template"),
        template_variables=cast("dict[str, Json]", plain(own or {})),
        allow_na=options.get("allow_na") is True,
        few_shot=_count(options.get("few_shot")),
    )
    if len(_KEPT) < 100:
        _KEPT[key] = judge
    return judge


def _text(options: Mapping[str, Json], name: str) -> str:
    text = options.get(name) or ""
    if not isinstance(text, str):
        raise InputError(f"{name}: must be text, got {type(text).__name__}")
    return text


def _count(value: Json) -> int:
    if value is None:
        return MAX_SHOWN
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputError(f"few_shot must be in 0..{MAX_SHOWN}, got {value!r:.40}")
    return value


def _scored(name: str, judgement: Judgement, kept: Mapping[str, Json]) -> SubScore:
    decision = judgement.decision
    metadata: dict[str, Json] = {
        **kept,
        "votes": decision.votes_to_list(),
        "examples": judgement.shown,
    }
    if judgement.left_out:
        metadata["examples_left_out"] = list(judgement.left_out)
    if decision.agreement is not None:
        metadata["agreement"] = decision.agreement
    if decision.error is not None:
        metadata["_outcome"] = decision.error.kind
        return SubScore(name, status="error", reason=str(decision.error), metadata=metadata)
    metadata["verdict"] = decision.word
    if decision.evidence:
        metadata["evidence"] = list(decision.evidence)
    if decision.value is None:
        return SubScore(name, status="skipped", reason=decision.reason, metadata=metadata)
    return SubScore(name, decision.value, metadata=metadata, reason=decision.reason)
