"""`EndpointGrader`: the kind ``external_endpoint``, a grader behind an HTTP endpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

from assay.errors import InputError
from assay.graders.base import Grader, Score
from assay.graders.endpoints.settings import EndpointSettings
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json
from assay.scoring.results import SubScore
from assay.types.submission import Submission
from assay.types.thread import StringThread


@dataclass(frozen=True, kw_only=True)
class EndpointGrader(EndpointSettings, Grader):
    """A score from a grader behind an HTTP endpoint.

    The answer or the conversation, the question, what was expected and the metadata are sent;
    a workspace and a trace are not. What the endpoint cannot grade, an endpoint that cannot be
    reached and a malformed reply are errors, never a 0. The endpoint's own score and details are in
    the metadata.
    """

    name: ClassVar[str] = "external_endpoint"
    from_rows: ClassVar[frozenset[str] | None] = frozenset()

    def __post_init__(self) -> None:
        object.__setattr__(self, "range", _span(self.range))  # a list, as files have it
        super().__post_init__()

    async def score(
        self,
        answer: Json = None,
        question: Json = None,
        expected: Json = None,
        thread: Json | StringThread = None,
        metadata: Json = None,
    ) -> SubScore:
        """Have one submission graded."""
        call = {"answer": answer, "question": question, "expected": expected}
        return (await self.graded([{**call, "thread": thread, "metadata": metadata}]))[0]

    @classmethod
    async def compute_many(
        cls, calls: Sequence[Mapping[str, object]]
    ) -> Sequence[Score | BaseException]:
        """Have many submissions graded, in batches of the size that the options say."""
        grouped: dict[EndpointGrader, list[int]] = {}
        found: dict[int, Score | BaseException] = {}
        for place, call in enumerate(calls):
            try:
                grouped.setdefault(cls.of(call), []).append(place)
            except InputError as error:
                found[place] = error
        for grader, places in grouped.items():
            graded = await grader.graded([calls[place] for place in places])
            found.update(zip(places, graded, strict=True))
        return [found[place] for place in range(len(calls))]

    async def graded(self, calls: Sequence[Mapping[str, object]]) -> list[SubScore]:
        """Have submissions graded that these settings go for, each by what it is called with."""
        from assay.graders.endpoints.calling import grade_remote

        graded = await grade_remote(self, [Submission.of(call) for call in calls])
        return [self._node(one) for one in graded]

    def _node(self, graded: Graded) -> SubScore:
        low, high = self.range
        # What the endpoint tells comes first: it must not stand for what is known here.
        metadata: dict[str, Json] = {**graded.details, "_outcome": graded.outcome}
        value = None
        if graded.score is not None:
            metadata["score"] = graded.score
            value = (graded.score - low) / (high - low)
        return SubScore(
            name=self.name,
            value=value,
            status=graded.status,
            reason=graded.error if graded.status == "error" else graded.reason,
            flags=graded.flags,
            metadata=metadata,
            assurance=graded.assurance,
        )

    @classmethod
    def handed(cls, options: Mapping[str, Json]) -> tuple[int, int]:
        """As the settings say: a request's worth, and as many requests as there may be."""
        from assay.graders.endpoints.forms import FORMS

        settings = cls.of(options)
        return min(settings.batch, FORMS[settings.protocol].most), settings.parallel


def _span(value: object) -> tuple[float, float]:
    pair = cast("Sequence[object]", value) if isinstance(value, list | tuple) else ()
    numbers = [float(n) for n in pair if isinstance(n, int | float) and not isinstance(n, bool)]
    if value is None:
        return 0.0, 1.0
    if len(pair) != 2 or len(numbers) != 2:
        raise InputError("range must be two numbers: the lowest and the highest score")
    return numbers[0], numbers[1]
