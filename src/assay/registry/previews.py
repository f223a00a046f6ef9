"""What a judge would be sent: its prompt about a sample, the variables, and what is wrong in them.

No model is asked and nothing is stored, so that whoever writes a template sees it as they write.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from assay.errors import AssayError
from assay.graders.binary_judge import DEFAULT_USER_TEMPLATE, SAMPLE, BinaryJudgeGrader
from assay.graders.judges.template_context import MATERIAL
from assay.registry.definitions import definition_from
from assay.scoring.json_safe import Json
from assay.types.codec import Problem, ShapeError
from assay.types.thread import StringThread

_MAX_VALUE = 2_000
_LINE = re.compile(r"line (\d+): ")


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateVariable:
    """A variable of a judge's templates, about one sample.

    Attributes:
        name: Its name.
        value: What it is written as, shortened.
        fence: The fence it is put into, for what is material; empty for trusted text.
        used: Whether a template uses it.
    """

    name: str
    value: str
    fence: str = ""
    used: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    """Something in a definition that is wrong, or worth a look.

    Attributes:
        field: Where, such as ``user_template``.
        line: Line of a template; null where it has none.
        message: What.
        hint: How to mend it.
        warning: Whether it can be stored all the same.
    """

    field: str
    message: str
    line: int | None = None
    hint: str = ""
    warning: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgePreview:
    """What a judge would be sent.

    Attributes:
        system: The system prompt; empty where something is wrong.
        user: Likewise, the user's.
        default_template: What stands in for a user template that is empty.
        variables: What templates can show.
        mistakes: What is wrong, or worth a look.
    """

    system: str = ""
    user: str = ""
    default_template: str = DEFAULT_USER_TEMPLATE
    variables: tuple[TemplateVariable, ...] = ()
    mistakes: tuple[Mistake, ...] = ()


def preview_judge(data: Mapping[str, Json], thread: StringThread | None = None) -> JudgePreview:
    """Fill in the templates of a judge of the kind ``binary_judge``, as far as they are right.

    Args:
        data: Its definition, which may have mistakes.
        thread: What is judged; a sample of ours by default.
    """
    about = SAMPLE if thread is None else thread
    lacking: tuple[Mistake, ...] = ()
    if not str(data.get("criteria") or "").strip():
        # The first thing that is written, and the rest can be shown without.
        data = {**data, "criteria": "…"}
        lacking = (Mistake(field="criteria", message="say what makes an answer pass"),)
    try:
        judge = BinaryJudgeGrader.of(definition_from("binary_judge", data).specs[0].options)
    except ShapeError as error:
        mistakes = (*lacking, *map(_mistake, error.problems))
        return JudgePreview(variables=_variables(_plainest(data), about), mistakes=mistakes)
    warnings = (*lacking, *map(_warning, judge.warnings()))
    variables = _variables(judge, about)
    try:
        system, user = judge.preview(about)
    except AssayError as error:  # the templates hold, so that it is this sample
        wrong = Mistake(field="", message=error.message, hint=error.hint)
        return JudgePreview(variables=variables, mistakes=(*warnings, wrong))
    return JudgePreview(system=system, user=user, variables=variables, mistakes=warnings)


def _plainest(data: Mapping[str, Json]) -> BinaryJudgeGrader:
    """A judge that can be made of what is half written, for its variables."""
    said, own = data.get("criteria"), data.get("template_variables")
    criteria = said if isinstance(said, str) else "…"
    names = {k: v for k, v in own.items() if k.isidentifier()} if isinstance(own, dict) else None
    return BinaryJudgeGrader(criteria=criteria, template_variables=names)


def _variables(judge: BinaryJudgeGrader, thread: StringThread) -> tuple[TemplateVariable, ...]:
    used, own = judge.used_variables(), judge.template_variables or {}

    def found() -> Iterator[TemplateVariable]:
        for name, value in judge.shown_variables(thread).items():
            fence = "" if name in own else MATERIAL.get(name, "")
            yield TemplateVariable(name=name, value=_written(value), fence=fence, used=name in used)

    return tuple(found())


def _written(value: Json) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _MAX_VALUE else f"{text[: _MAX_VALUE - 1]}…"


def _mistake(problem: Problem) -> Mistake:
    line, message = _placed(problem.message)
    return Mistake(field=problem.field, message=message, line=line, hint=problem.hint)


def _warning(text: str) -> Mistake:
    field, _, rest = text.partition(": ")
    line, message = _placed(rest)
    return Mistake(field=field, message=message, line=line, warning=True)


def _placed(message: str) -> tuple[int | None, str]:
    """The line of a template that a message begins with."""
    said = _LINE.match(message)
    return (int(said[1]), message[said.end() :]) if said else (None, message)
