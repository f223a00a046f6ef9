"""`EndpointGrader`: the kind ``external_endpoint``, a grader behind an HTTP endpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import ClassVar, cast

from assay.errors import InputError
from assay.graders.base import Grader, Parameter, Score, field_parameters
from assay.graders.endpoints.settings import EndpointSettings
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json
from assay.scoring.results import SubScore
from assay.types.submission import Submission
from assay.types.thread import StringThread

__all__ = ["EndpointGrader"]

_PARTS = ("answer", "question", "expected", "thread", "metadata")


class EndpointGrader(Grader):
    """A score from a grader behind an HTTP endpoint.

    The answer or the conversation, the question, what was expected and the metadata are sent;
    a workspace and a trace are not. What the endpoint cannot grade, an endpoint that cannot be
    reached and a malformed reply are errors, never a 0.
    """

    name: ClassVar[str] = "external_endpoint"

    @classmethod
    def options_type(cls) -> type[object]:
        """The settings of an endpoint."""
        return EndpointSettings

    @classmethod
    def parameters(cls) -> tuple[dict[str, Parameter], bool]:
        """The settings, and the parts of a submission that are sent."""
        parts = {name: Parameter(name) for name in _PARTS}
        return {**field_parameters(EndpointSettings), **parts}, False

    @classmethod
    async def compute_score(cls, **parameters: object) -> SubScore:
        """Have one submission graded.

        Args:
            **parameters: The fields of `EndpointSettings`, and ``answer``, ``question``,
                ``expected``, ``thread`` and ``metadata``.

        Returns:
            A node with the score moved from ``range`` to [0, 1]; the endpoint's own score and
            details are in the metadata.
        """
        (node,) = await cls.compute_many([parameters])
        if isinstance(node, BaseException):
            raise node
        return cast("SubScore", node)

    @classmethod
    async def compute_many(
        cls, calls: Sequence[Mapping[str, object]]
    ) -> Sequence[Score | BaseException]:
        """Have many submissions graded, in batches of the size that the options say."""
        from assay.graders.endpoints.calling import grade_remote

        grouped: dict[EndpointSettings, list[int]] = {}
        found: dict[int, Score | BaseException] = {}
        for place, call in enumerate(calls):
            try:
                grouped.setdefault(_settings(call), []).append(place)
            except InputError as error:
                found[place] = error
        for settings, places in grouped.items():
            submissions = [_submission(calls[place]) for place in places]
            graded = await grade_remote(settings, submissions)
            for place, outcome in zip(places, graded, strict=True):
                found[place] = cls._node(outcome, settings.range)
        return [found[place] for place in range(len(calls))]

    @classmethod
    def handed(cls, options: Mapping[str, Json]) -> tuple[int, int]:
        """As the settings say: a request's worth, and as many requests as there may be."""
        from assay.graders.endpoints.forms import FORMS

        settings = _settings(options)
        return min(settings.batch, FORMS[settings.protocol].most), settings.parallel

    @classmethod
    def check_options(cls, options: Mapping[str, Json]) -> None:
        """Refuse options that make no sense, and a URL that may not be called."""
        cls.settings(options)

    @classmethod
    def settings(cls, options: Mapping[str, object]) -> EndpointSettings:
        """The settings among a grader's options; others are passed over.

        Raises:
            InputError: For those that make no sense.
        """
        return _settings(options)

    @classmethod
    def _node(cls, graded: Graded, span: tuple[float, float]) -> SubScore:
        low, high = span
        # What the endpoint tells comes first: it must not stand for what is known here.
        metadata: dict[str, Json] = {**graded.details, "_outcome": graded.outcome}
        value = None
        if graded.score is not None:
            metadata["score"] = graded.score
            value = (graded.score - low) / (high - low)
        return SubScore(
            name=cls.name,
            value=value,
            status=graded.status,
            reason=graded.error if graded.status == "error" else graded.reason,
            flags=graded.flags,
            metadata=metadata,
            assurance=graded.assurance,
        )


def _settings(options: Mapping[str, object]) -> EndpointSettings:
    """The settings among a grader's parameters."""
    given = {f.name: options[f.name] for f in fields(EndpointSettings) if f.name in options}
    if given.get("range") is None:
        given.pop("range", None)
    else:
        given["range"] = _span(given["range"])
    return EndpointSettings(**given)  # pyright: ignore[reportArgumentType] - checked by the codec, or by the caller's types


def _span(value: object) -> tuple[float, float]:
    pair = cast("Sequence[object]", value) if isinstance(value, list | tuple) else ()
    numbers = [float(n) for n in pair if isinstance(n, int | float) and not isinstance(n, bool)]
    if len(pair) != 2 or len(numbers) != 2:
        raise InputError("range must be two numbers: the lowest and the highest score")
    return numbers[0], numbers[1]


def _submission(call: Mapping[str, object]) -> Submission:
    """The submission among a grader's parameters."""
    answer, question, expected, thread, metadata = (call.get(name) for name in _PARTS)
    return Submission(
        answer=cast("str | None", answer),
        question=cast("str | None", question),
        expected=cast("Json", expected),
        thread=cast("StringThread | None", thread),
        metadata=cast("Mapping[str, Json] | None", metadata) or {},
    )
