"""`JudgeGrader`: what all graders that ask a model have in common."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import ClassVar, cast

from assay.errors import GraderError, InputError
from assay.graders.base import Grader, field_parameters
from assay.graders.judges.fence import row_text
from assay.graders.judges.panel import DEFAULT_MODEL, Aggregate, Panel, Tie
from assay.graders.judges.pictures import Shown, left_in
from assay.models import current_client, parse_reference, unconfigured
from assay.scoring.json_safe import Json, noted, record_parameters
from assay.scoring.results import Assurance
from assay.types.submission import SUBMISSION_PARTS, Workspace
from assay.types.thread import StringThread

_SHOWN = frozenset({*SUBMISSION_PARTS, "reference"})


@dataclass(frozen=True, kw_only=True)  # no slots: what is read from its options is kept with it
class JudgeGrader(Grader):
    """A grader that asks one model, or a panel of them.

    Attributes:
        model: Reference of the model that is asked; see the page on models.
        models: References of several, instead: each of them votes.
        repeats: How often each is asked.
        aggregate: ``majority`` of the verdicts, or ``mean``, ``median`` or ``min`` of the values.
        quorum: Fewest votes that decide; more than half of those asked by default (0).
        tie: What an even split is: ``fail``, ``na`` (does not apply) or ``error``.
        escalate: A model that decides alone where the votes disagree.
        temperature: As in a request; null to send none.
        max_tokens: Likewise; judges that reason need room.
        timeout_seconds: For one vote, all tries together.
    """

    waits: ClassVar[bool] = True
    assurance: ClassVar[Assurance | None] = "model"
    most_at_once: ClassVar[int] = 256
    """The client has limits of its own, by endpoint."""
    default_model: ClassVar[str] = DEFAULT_MODEL
    from_rows: ClassVar[frozenset[str] | None] = frozenset(
        {"criteria", "documents", "example", "examples", "other", "reference", "turns", "words"}
    )
    """What stands in fences, which rubric of a file is meant, and which turns it is about: not who
    is asked, nor how."""

    model: str | None = None
    models: list[str] | None = None
    repeats: int = 1
    aggregate: Aggregate | None = None
    quorum: int = 0
    tie: Tie = "fail"
    escalate: str = ""
    temperature: float | None = 0.0
    max_tokens: int = 4096
    timeout_seconds: float = 180.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.panel

    @cached_property
    def panel(self) -> Panel:
        """Who is asked, and how votes are counted."""
        given = cast("object", self.models)
        listed = cast("Sequence[object]", given) if isinstance(given, list | tuple) else None
        if self.model is not None and given:
            raise InputError("models: give 'model' or 'models', not both")
        if given is None:
            names = (self.default_model if self.model is None else self.model,)
        elif listed is None or not all(isinstance(name, str) for name in listed):
            raise InputError("models: must be a list of model references")
        elif not listed:
            raise InputError("models: names nobody", hint="leave it out for the default model")
        else:
            names = tuple(cast("Sequence[str]", listed))
        for name in (*names, *filter(None, [self.escalate])):
            parse_reference(name)
        same = {f.name: getattr(self, f.name) for f in fields(Panel) if f.name not in _TOLD_APART}
        return Panel(models=names, aggregate=self.aggregate or self.default_aggregate, **same)

    @property
    def default_aggregate(self) -> Aggregate:
        """How votes are counted where nothing is said."""
        return "majority"

    @classmethod
    def record(cls, parameters: Mapping[str, object]) -> dict[str, Json]:
        """The options; what is graded is kept with the submission."""
        return record_parameters({k: v for k, v in parameters.items() if k not in _SHOWN})

    @classmethod
    def rests_on(cls, options: Mapping[str, Json]) -> Json:
        """What the settings file says of the models that it names: another is another judge."""
        panel = cls._panel_of(options)
        entries = current_client().settings.endpoints
        known: dict[str, Json] = {
            name: [entry.protocol, entry.base_url, entry.model, entry.structured]
            for name in (*panel.models, panel.escalate)
            if (entry := entries.get(name)) is not None
        }
        return known or None

    @classmethod
    def models_missing(cls, options: Mapping[str, Json]) -> list[str]:
        """The models of a declaration that cannot be asked on this machine, and why not."""
        named = cls.models_of(options)
        return list(dict.fromkeys(why for model in named if (why := unconfigured(model))))

    @classmethod
    def models_of(cls, options: Mapping[str, Json]) -> Sequence[str]:
        """Those of the panel, and the one that decides where it cannot."""
        panel = cls._panel_of(options)
        return (*panel.models, *filter(None, [panel.escalate]))

    @classmethod
    def _panel_of(cls, options: Mapping[str, Json]) -> Panel:
        """Who is asked by a declaration, of which options may come from rows."""
        own = {name: options[name] for name in field_parameters(JudgeGrader) if name in options}
        named = {} if own.get("model") or own.get("models") else {"model": cls.default_model}
        return JudgeGrader.of({**own, **named}).panel

    @classmethod
    def of_row(cls, option: object) -> object:
        """What a row gives stands in a fence."""
        return row_text(option)


_TOLD_APART = ("models", "aggregate", "pictures", "unshown")


@dataclass(frozen=True, kw_only=True)  # no slots, as above
class SeeingJudge(JudgeGrader):
    """A judge that can be shown pictures.

    Attributes:
        images: Whether the judge is shown the pictures of the conversation and, beside a diff,
            those that were left. No fence stands around a picture, and it may hold orders to the
            judge.
    """

    images: bool = False

    def looking_at(
        self, pictures: Sequence[Shown], workspace: Workspace | None = None
    ) -> tuple[Panel, dict[str, Json]]:
        """Who is asked, with what is shown to them, and what is kept of that with the score."""
        if not self.images:
            return self.panel, {}
        left, unshown = left_in(workspace)
        shown = (*pictures, *left)
        told: dict[str, Json] = {"images": [one.to_json() for one in shown]}
        told |= noted(images_left_out=unshown)
        return replace(self.panel, pictures=shown, unshown=unshown), told


def answer_in(answer: str | None, thread: StringThread | None = None) -> str:
    """The answer, or where none is given the final assistant turn; either may be empty.

    An agent that was at work and said nothing at the end has given an empty answer.
    """
    if answer is None and thread is not None:
        answer = thread.completion()
        if answer is None and any(turn[0] in ("assistant", "tool") for turn in thread.turns):
            answer = ""
    if answer is None:
        raise GraderError("there is no answer", hint='an answer that is empty is ""')
    return answer


def text_of(value: Json) -> str:
    """A part of a submission as a judge reads it: text as it is, anything else as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)
