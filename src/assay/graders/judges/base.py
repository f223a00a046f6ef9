"""`JudgeGrader`: what all graders that ask a model have in common."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar, cast

from assay.errors import GraderError, InputError
from assay.graders.base import Grader, Parameter, signature_parameters
from assay.graders.judges.panel import DEFAULT_MODEL, Aggregate, Panel, Tie
from assay.models import current_client, parse_reference, unconfigured
from assay.scoring.json_safe import Json, record_parameters
from assay.types.submission import SUBMISSION_PARTS
from assay.types.thread import StringThread

__all__ = ["JudgeGrader", "answer_in", "panel_of", "text_of"]

_SHOWN = frozenset({*SUBMISSION_PARTS, "reference"})


class JudgeGrader(Grader):
    """A grader that asks one model, or a panel of them.

    Every one of them takes the options of a `Panel` beside its own: ``model`` or ``models``,
    ``repeats``, ``aggregate``, ``quorum``, ``tie``, ``escalate``, ``temperature``, ``max_tokens``
    and ``timeout_seconds``. A subclass names its own parameters in ``compute_score`` and takes
    these as ``**options``.
    """

    waits: ClassVar[bool] = True
    assurance = "model"
    most_at_once: ClassVar[int] = 256
    """The client has limits of its own, by endpoint."""

    @classmethod
    def parameters(cls) -> tuple[dict[str, Parameter], bool]:
        """The grader's own parameters, and those of the panel."""
        return _parameters(cls)

    @classmethod
    def record(cls, parameters: Mapping[str, object]) -> dict[str, Json]:
        """The options; what is graded is kept with the submission."""
        options = {name: value for name, value in parameters.items() if name not in _SHOWN}
        try:
            return dict(_recorded(tuple((k, type(v), _frozen(v)) for k, v in options.items())))
        except TypeError:  # a mapping among the criteria, say
            return record_parameters(options)

    @classmethod
    def check_options(cls, options: Mapping[str, Json]) -> None:
        """Refuse an impossible panel, and models that no reference can name."""
        panel_of(options)

    @classmethod
    def rests_on(cls, options: Mapping[str, Json]) -> Json:
        """What the settings file says of the models that it names: another is another judge."""
        panel = panel_of(options)
        entries = current_client().settings.endpoints
        known: dict[str, Json] = {
            name: [entry.protocol, entry.base_url, entry.model, entry.structured]
            for name in (*panel.models, panel.escalate)
            if (entry := entries.get(name)) is not None
        }
        return known or None

    @classmethod
    def models_missing(cls, options: Mapping[str, Json]) -> list[str]:
        """The models of a declaration that cannot be asked on this machine, and why not.

        Returns:
            A sentence for each, for people; the environment and the settings file alone decide.
        """
        panel = panel_of(options)
        named = (*panel.models, *filter(None, [panel.escalate]))
        return list(dict.fromkeys(why for model in named if (why := unconfigured(model))))


def _frozen(value: object) -> object:
    return tuple(cast("list[object]", value)) if isinstance(value, list) else value


@lru_cache(maxsize=256)
def _recorded(options: tuple[tuple[str, type, object], ...]) -> dict[str, Json]:
    return record_parameters({name: value for name, _, value in options})


@lru_cache(maxsize=64)
def _parameters(grader: type[JudgeGrader]) -> tuple[dict[str, Parameter], bool]:
    own, _ = signature_parameters(grader.compute_score)
    return {**own, **_panel_parameters()}, False


@lru_cache(maxsize=1)
def _panel_parameters() -> dict[str, Parameter]:
    known, _ = signature_parameters(_panel)
    return known


def _panel(
    *,
    model: str = DEFAULT_MODEL,
    models: list[str] | None = None,
    repeats: int = 1,
    aggregate: Aggregate = "majority",
    quorum: int = 0,
    tie: Tie = "fail",
    escalate: str = "",
    temperature: float | None = 0.0,
    max_tokens: int = 4096,
    timeout_seconds: float = 180.0,
) -> Panel:
    names = tuple(models) if models else (model,)
    for name in (*names, *([escalate] if escalate else [])):
        parse_reference(name)
    return Panel(
        models=names,
        repeats=repeats,
        aggregate=aggregate,
        quorum=quorum,
        tie=tie,
        escalate=escalate,
        temperature=temperature,
        max_tokens=max_tokens,
        timeout_seconds=timeout_seconds,
    )


_PANELS: dict[tuple[object, ...], Panel] = {}


def panel_of(options: Mapping[str, object], *, model: str = "") -> Panel:
    """The panel that options describe; those of other names are not looked at.

    Raises:
        InputError: For an impossible panel, or ``model`` beside ``models``.
    """
    names = _panel_parameters()
    given = {name: value for name, value in options.items() if name in names and value is not None}
    if "temperature" in options:
        given["temperature"] = options["temperature"]
    if "model" in given and given.get("models"):
        raise InputError("models: give 'model' or 'models', not both")
    if model and "model" not in given and not given.get("models"):
        given["model"] = model
    listed = given.get("models")
    if listed is not None and not listed:
        raise InputError("models: names nobody", hint="leave it out for the default model")
    key = tuple(sorted((k, repr(v)) for k, v in given.items()))
    if (known := _PANELS.get(key)) is not None:
        return known
    if listed is not None and (
        not isinstance(listed, list | tuple)
        or not all(isinstance(name, str) for name in cast("Sequence[object]", listed))
    ):
        raise InputError("models: must be a list of model references")
    panel = _panel(**cast("dict[str, Any]", given))
    if len(_PANELS) < 1_000:
        _PANELS[key] = panel
    return panel


def answer_in(answer: str | None, thread: StringThread | None = None) -> str:
    """The answer, or where none is given the final assistant turn; either may be empty.

    An agent that was at work and said nothing at the end has given an empty answer.

    Raises:
        GraderError: If nobody answered at all: then something is missing, and nobody failed.
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
