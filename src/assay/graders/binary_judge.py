"""`BinaryJudgeGrader`: the kind ``binary_judge``, PASS or FAIL by a criterion in plain words.

Whatever a template puts where, the judge is told first what a fence is, and the criterion and the
form of the reply stand last, behind all material.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, cast

from assay.errors import InputError, ModelError
from assay.graders.judges.base import SeeingJudge
from assay.graders.judges.criteria import Criterion
from assay.graders.judges.evidence import Sought
from assay.graders.judges.fence import (
    MAX_MATERIAL,
    Part,
    Prompt,
    asking,
    compose,
    suspicions,
)
from assay.graders.judges.gate import Unasked, unasked, uncommented
from assay.graders.judges.panel import TEXT, Form, Opinion, object_schema
from assay.graders.judges.pictures import quotable, shown_of
from assay.graders.judges.rubric import verdict_form
from assay.graders.judges.template import MAX_OUTPUT, check_template, names_used
from assay.graders.judges.template_context import (
    MATERIAL,
    MAX_SHOWN,
    Example,
    chosen,
    conversation,
    fenced_render,
    read_examples,
    variables,
)
from assay.graders.judges.votes import node_of, poll, probed
from assay.scoring.json_safe import Json, noted, plain
from assay.scoring.results import SubScore
from assay.types.codec import Share
from assay.types.thread import StringThread

__all__ = ["DEFAULT_USER_TEMPLATE", "SAMPLE", "BinaryJudgeGrader"]

DEFAULT_USER_TEMPLATE = """\
{{#if examples}}
How people decided about other answers. It shows how they understand the criterion, and it binds \
nobody: an answer that resembles one of these is judged by the criterion like any other.

{{#each examples}}
Answer number {{number}}, {{label}}:
{{#if user_question}}
{{user_question}}
{{/if}}
{{completion}}
{{#if reasoning}}
{{reasoning}}
{{/if}}

{{/each}}
{{/if}}
{{#if context_str_without_last_user}}
What came before the question, to understand it by; it is not judged:
{{context_str_without_last_user}}

{{/if}}
{{#if last_user_turn_content}}
The question:
{{last_user_turn_content}}

{{/if}}
The answer to be judged:
{{completion}}
"""
"""How the material is shown where the author gives no template."""

SAMPLE = StringThread(
    [
        ("system", "Answer in one line."),
        ("document", "Two and two make four."),
        ("user", "What is 2 + 2?"),
        ("assistant", "4"),
    ]
)
"""What templates are tried on."""

_SAMPLE_EXAMPLE = Example(
    input=(("user", "What is 1 + 1?"),), output="2", passes=True, reasoning="It is right."
)
_FIXED_NONCE = "0123456789abcdef"


@dataclass(frozen=True, kw_only=True)
class BinaryJudgeGrader(SeeingJudge):
    """PASS (1.0) or FAIL (0.0) by one criterion, judged by a model.

    An answer without content fails, and no model is asked. Where the criterion does not apply,
    and the author allows a judge to say so, the score is skipped.

    Attributes:
        criteria: What makes an answer pass, in plain words.
        examples: Answers that people decided about, the best first: ``{"input", "output", "pass",
            "reasoning"}`` each.
        system_template: Handlebars, behind what every judge is told.
        user_template: Handlebars; `DEFAULT_USER_TEMPLATE` where it is empty.
        template_variables: Variables of one's own for the templates.
        feedback_key: The metric that the score is written to; kept with the score.
        allow_na: Whether a judge may say that the criterion does not apply.
        few_shot: How many examples it is shown, at most; 0 to 8.
        canary: Share of answers, in [0, 1], on which the judge itself is probed. Those that show a
            pattern of attack are always among them, unless it is 0.
        openers: Whether the mere beginning of an answer ("Solution:") fails, too.
    """

    name: ClassVar[str] = "BinaryJudgeGrader"

    criteria: str
    examples: Sequence[Mapping[str, Json]] | None = None
    system_template: str = ""
    user_template: str = ""
    template_variables: dict[str, Json] | None = None
    feedback_key: str = ""
    allow_na: bool = False
    few_shot: int = MAX_SHOWN
    canary: Share = 0.02
    openers: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("criteria", "system_template", "user_template"):
            if not isinstance(text := getattr(self, name), str):
                raise InputError(f"{name}: must be text, got {type(text).__name__}")
        if not self.criteria.strip():
            raise InputError("criteria: must not be empty", hint="say what makes an answer pass")
        count = cast("object", self.few_shot)
        if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= MAX_SHOWN:
            raise InputError(f"few_shot must be in 0..{MAX_SHOWN}, got {count!r:.40}")
        given = self._variables(SAMPLE, (_SAMPLE_EXAMPLE,))
        _ = self._examples
        for name, template in self._templates():
            try:
                fenced_render(template, given, self._own_variables)
            except InputError as error:
                where = f"{error.location}: " if str(error.location) else ""
                message = f"{name}: {where}{error.message}"
                raise InputError(message, hint=error.hint) from error

    @classmethod
    def record(cls, parameters: Mapping[str, object]) -> dict[str, Json]:
        """As of every judge; the examples stand in the grader's definition."""
        return super().record({k: v for k, v in parameters.items() if k != "examples"})

    async def score(
        self,
        answer: str | None = None,
        question: str | None = None,
        thread: StringThread | None = None,
        metadata: Mapping[str, Json] | None = None,
    ) -> SubScore:
        """Judge an answer.

        Args:
            answer: What is judged; what ends ``thread`` by default.
            question: What was asked for, where there is no thread.
            thread: The conversation.
            metadata: What belongs to the sample; templates may show it.
        """
        panel, seen = self.looking_at(shown_of(thread))
        asked = conversation(answer, question, thread, metadata)
        completion = asked.completion() or ""
        kept: dict[str, Json] = {"model": panel.models[0], "models": list(panel.models), **seen}
        kept |= noted(feedback_key=self.feedback_key)
        beside = sum(len(turn[1]) for turn in asked.messages()[:-1])
        nothing = unasked(completion, openers=self.openers, beside=beside)
        if nothing and panel.leaves(nothing):
            return nothing.node(self.name, {**kept, "verdict": "FAIL"})
        found = _suspicions(asked)
        kept |= noted(injection_suspected=found)
        shown, left_out = chosen(self._examples, completion, self.few_shot)
        own = quotable(uncommented(completion), panel.pictures)
        sought = Sought(own) if self._is_quoted else None
        decision, probe, refused = await probed(
            poll(lambda: self.prompt(asked, shown), self._form(sought), panel),
            lambda said: BinaryJudgeGrader(criteria=said).prompt(asked),
            _PROBE_FORM,
            panel,
            answer=completion,
            asked=self.criteria,
            share=self.canary,
            is_suspicious=bool(found),
        )
        if probe is not None:
            kept["probe"] = probe.votes_to_list()
            decision = replace(decision, error=decision.error or refused)
        error = decision.error
        if isinstance(error, _TooMuchError) and len(completion) > beside:
            # What a template makes of an answer may be several times its length.
            nothing = Unasked(str(error), is_overlong=True)
            return nothing.node(self.name, {**kept, "verdict": "FAIL"})
        kept.update({"votes": decision.votes_to_list(), "examples": len(shown)})
        kept |= noted(examples_left_out=list(left_out))
        if decision.agreement is not None:
            kept["agreement"] = decision.agreement
        if decision.error is None:
            kept |= {"verdict": decision.word, **noted(evidence=list(decision.evidence))}
        return node_of(self.name, decision, kept)

    @cached_property
    def _examples(self) -> tuple[Example, ...]:
        return read_examples(self.examples)

    @cached_property
    def _own_variables(self) -> dict[str, Json]:
        own = cast("object", self.template_variables)
        if own is None:
            return {}
        if not isinstance(own, dict):
            raise InputError("template_variables: must be a mapping of names to values")
        for name in cast("dict[str, Json]", own):
            if not name.isidentifier():
                raise InputError(
                    f"template_variables: {name!r:.60} is not the name of a variable",
                    hint="letters, digits and _",
                )
        return cast("dict[str, Json]", plain(cast("Json", own)))

    @property
    def is_own(self) -> bool:
        """Whether the author gives a template."""
        return bool(self.system_template or self.user_template)

    def prompt(self, thread: StringThread, shown: Sequence[Example] = ()) -> Prompt:
        """What a judge is sent about a conversation.

        Raises:
            ModelError: Of the kind ``overflow`` for more material than a judge is sent.
        """
        given, own = self._variables(thread, shown), self._own_variables
        try:
            system = fenced_render(self.system_template, given, own)
            user = fenced_render(self.user_template or DEFAULT_USER_TEMPLATE, given, own)
        except InputError as error:
            # The templates hold with a sample, so that it is this conversation that is too much.
            raise _TooMuchError(
                f"the templates cannot be filled in: {error}", f"at most {MAX_OUTPUT:,} characters"
            ) from error
        if system.material + user.material > MAX_MATERIAL:
            raise _TooMuchError(
                f"the material makes a prompt of more than {MAX_MATERIAL:,} characters",
                "a judge reads all of it or nothing; grade such work in parts",
            )
        names = (*system.volatile, *user.volatile)
        asked, ending = self._ending()
        parts: list[Part] = [user.text.strip("\n"), *asked]
        composed = compose("binary", parts, ending, system=system.text)
        return replace(composed, volatile=tuple(dict.fromkeys((*names, *composed.volatile))))

    def preview(self, thread: StringThread = SAMPLE) -> tuple[str, str]:
        """The system and the user prompt about a sample; fences have one fixed name.

        Raises:
            ModelError: As of `prompt`.
        """
        answer = "" if thread is SAMPLE else thread.completion() or ""
        prompt = self.prompt(thread, chosen(self._examples, answer, self.few_shot)[0])
        texts = [str(message.content) for message in prompt.messages]
        for nonce in prompt.volatile:
            texts = [text.replace(nonce, _FIXED_NONCE) for text in texts]
        return texts[0], texts[1]

    def shown_variables(self, thread: StringThread = SAMPLE) -> dict[str, Json]:
        """The variables of the templates, with what they are about a sample."""
        shown, _ = chosen(self._examples, thread.completion() or "", self.few_shot)
        return self._variables(thread, shown)

    def used_variables(self) -> frozenset[str]:
        """The names that the templates use."""
        return frozenset(name for _, template in self._templates() for name in names_used(template))

    def warnings(self) -> tuple[str, ...]:
        """What is worth a look: variables that do not exist, an answer that is not shown."""
        return tuple(self._warnings())

    def _warnings(self) -> Iterator[str]:
        known = self._variables(SAMPLE, (_SAMPLE_EXAMPLE,))
        builtin = {*MATERIAL, "criteria", "output_schema"}
        for name in sorted(builtin & set(self._own_variables)):
            yield f"template_variables: {name!r} stands for itself now, and not for what it was"
        for name, template in self._templates():
            for warning in check_template(template, known):
                yield f"{name}: {warning}"
        used = names_used(self.system_template) | names_used(self.user_template)
        if self.user_template and not used & {"completion", "turns"}:
            yield "user_template: the answer is not shown: use {{completion}}"

    def _templates(self) -> Iterator[tuple[str, str]]:
        yield "system_template", self.system_template
        yield "user_template", self.user_template or DEFAULT_USER_TEMPLATE

    def _variables(self, thread: StringThread, shown: Sequence[Example]) -> dict[str, Json]:
        return variables(
            thread,
            criteria=self.criteria,
            examples=shown,
            allow_na=self.allow_na,
            own=self._own_variables,
        )

    @property
    def _is_quoted(self) -> bool:
        """Whether a PASS needs a quote: where the prompt is ours, and something must be there."""
        return not self.is_own and Criterion(requirement=self.criteria).is_presence

    def _ending(self) -> tuple[tuple[Part, ...], str]:
        criterion = Criterion(requirement=self.criteria)
        polarity = "presence" if criterion.is_presence else "absence"
        shown, said = asking("CRITERION", self.criteria)
        lines = [said, "", f"POLARITY: {polarity}", ""]
        lines.append("Say whether the answer meets the criterion, taken literally.")
        lines.append("score: PASS where it does, FAIL where it does not, or not wholly.")
        if self.allow_na:
            lines.append("NA is for a criterion whose condition does not arise here at all.")
        first = ""
        if self._is_quoted:
            first = (
                "First the evidence: passages of the answer, copied word for word, without which "
                "nothing can PASS; then "
            )
        lines.append(f"{first or 'First '}the reasoning, in a sentence or two; then the score.")
        return shown, "\n".join(lines)

    def _form(self, sought: Sought | None) -> Form[Opinion]:
        schema = _SCHEMAS[self._is_quoted, self.allow_na]
        return verdict_form("score", schema, _WORTH, sought, self.criteria)


_WORTH = {"PASS": 1.0, "FAIL": 0.0}


def _schema(*, is_quoted: bool, allow_na: bool) -> dict[str, Json]:
    words: list[Json] = ["PASS", "FAIL", *(["NA"] if allow_na else [])]
    quotes: dict[str, Json] = {"evidence": {"type": "array", "items": TEXT}} if is_quoted else {}
    return object_schema(**quotes, reasoning=TEXT, score={"type": "string", "enum": words})


# One object for each: what is compiled from a schema is kept by the object.
_SCHEMAS = {
    (quoted, na): _schema(is_quoted=quoted, allow_na=na)
    for quoted in (False, True)
    for na in (False, True)
}
_PROBE_FORM = verdict_form("score", _SCHEMAS[True, False], _WORTH)


def _suspicions(thread: StringThread) -> list[Json]:
    """Patterns of attack in a conversation: whatever of it a template may show."""
    found = (name for turn in thread.turns for name in suspicions(turn.content))
    return list[Json](dict.fromkeys(found))


class _TooMuchError(ModelError):
    """A conversation makes a prompt that is too long."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message, kind="overflow", hint=hint)
