"""`Grader`: the async base class of everything that gives a score."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Mapping, Sequence
from copy import deepcopy
from dataclasses import MISSING, fields, is_dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypedDict, cast

from assay.errors import GraderError, InputError, is_fault, nearest, reason_of, traceback_of
from assay.frozen import frozen
from assay.graders.batched import Batched
from assay.scoring.combine import begun_in_place, combine_all, combine_any, own_task
from assay.scoring.json_safe import Json, record_evidence, record_parameters
from assay.scoring.results import (
    Assurance,
    SubScore,
    checked_weight,
    finite_number,
    unrounded,
    weakest,
)
from assay.turns import current_turn
from assay.types.codec import check_fields
from assay.types.thread import StringThread

if TYPE_CHECKING:
    from typing import Self

__all__ = ["Grader", "Parameter", "Score", "field_parameters", "signature_parameters"]

_OF_ALL = ("weight", "name", "gate")  # what `Grader.grade` takes beside a grader's own

Score: TypeAlias = "float | tuple[float, Mapping[str, object] | None] | SubScore"
"""What `Grader.compute_score` may return: a value in [0, 1], that with evidence, or a node."""


@frozen
class Parameter:
    """One parameter that a grader takes."""

    name: str
    annotation: object = object
    required: bool = False
    default: object = None


class AskedNode(TypedDict):
    """What a node has from who asks for the score, and not from its grader."""

    name: str
    weight: float
    gate: bool


class Grader(Batched):
    """Turns a piece of work into a score.

    Subclass it, set ``name`` and write ``compute_score`` with the parameters you need::

        class LengthGrader(Grader):
            name = "length"

            @classmethod
            async def compute_score(cls, answer: str = "", target: int = 100) -> float:
                return 1.0 if len(answer) >= target else 0.0

    Parameters named like a part of the submission (``answer``, ``question``, ``expected``,
    ``workspace``, ``trace``, ``thread``, ``metadata``) are filled in from it where a case, a
    dataset or a server runs the grader. An exception is an error, never a 0.

    A grader with many options is a frozen dataclass instead: its fields are its options, in Python
    as in YAML, and ``score`` grades with the parts of a submission as its parameters. What its
    annotations say of an option (`assay.types.codec.Share`, say) is checked; what else is wrong
    with the options is said once, by ``__post_init__``.
    """

    name: ClassVar[str] = "BaseGrader"
    filled_from: ClassVar[Mapping[str, str]] = {}
    """Further parameters that are taken from the submission: parameter name to part name."""
    needs_credit: ClassVar[bool] = False
    """Whether its score counts only where a grader of the work itself gave some credit."""
    of_conduct: ClassVar[bool] = False
    """Whether it grades how the work was done, which is not credit for the work itself."""
    waits: ClassVar[bool] = False
    """Whether it mostly waits for somebody else, such as a model: many may be at it at once."""
    asks_again: ClassVar[bool] = False
    """Whether replies of models lead to more questions, which nobody knows before."""
    is_pure: ClassVar[bool] = False
    """Whether it only compares, from its parameters alone: any process may do it as well."""
    computes: ClassVar[bool] = False
    """Whether any process may do it that may start others for it, and it limits its own time."""
    batch_size: ClassVar[int] = 1
    """How many submissions are best handed to it together."""
    most_at_once: ClassVar[int] = 16
    """How many scores of a batch are computed at the same time."""
    assurance: ClassVar[Assurance | None] = "separate"
    """How far its scores can be trusted, unless a node says so itself."""
    from_rows: ClassVar[frozenset[str] | None] = None
    """Options that a row may give; None for all that are no files. Whatever is asked or called, or
    guards the grader, is for its author to say."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        own = vars(cls).get("compute_score")
        if inspect.isfunction(own) and own.__code__.co_varnames[:1] == ("self",):
            raise InputError(
                f"{cls.__name__}.compute_score takes self, and is called on the class",
                hint="put @classmethod above it, and cls in the place of self",
            )

    @classmethod
    def compute_score(cls, *args: Any, **parameters: Any) -> Score | Awaitable[Score]:  # noqa: ANN401 - gradual on purpose: an override names its own parameters
        """Grade; override this, plain or async, with the parameters you need.

        Returns:
            A number in [0, 1], a pair of that and a mapping of evidence, or a `SubScore`.
        """
        if not is_dataclass(cls):
            raise NotImplementedError(f"{cls.__name__} does not implement compute_score")
        options = field_parameters(cls)
        parts = {name: part for name, part in parameters.items() if name not in options}
        return cls.of(parameters).score(*args, **parts)

    def __post_init__(self) -> None:
        """Refuse impossible options; where there is more to say of them, call this one first.

        Raises:
            InputError: For the fields that are not what their annotations say.
        """
        if is_dataclass(self):
            check_fields(self)

    def score(self, *args: Any, **parts: Any) -> Score | Awaitable[Score]:  # noqa: ANN401 - as `compute_score`
        """Grade by the options in the fields; override this in a dataclass of options.

        Returns:
            As `compute_score`.
        """
        raise NotImplementedError(f"{type(self).__name__} does not implement score")

    @classmethod
    def of(cls, options: Mapping[str, object]) -> Self:
        """The grader with some options, made once for equal ones; other names are not looked at.

        Only plain options are known to be equal, and only what is frozen remembers no submission.

        Raises:
            InputError: For impossible options.
        """
        known = field_parameters(cls)
        given = {name: option for name, option in options.items() if name in known}
        if not (cast("Any", cls).__dataclass_params__.frozen and _is_plain(given)):
            return cls(**given)
        key = (cls, repr(given))
        if (made := _MADE.get(key)) is None:
            made = cls(**deepcopy(given))  # whoever gave a list may change it
            while len(_MADE) >= _MOST_MADE:
                _MADE.pop(next(iter(_MADE)), None)
            _MADE[key] = made
        return cast("Self", made)

    @classmethod
    def _has_fields(cls) -> bool:
        """Whether its fields are its options: a dataclass that has no other ``compute_score``."""
        own = getattr(cls.compute_score, "__func__", None)  # a static method has none
        return own is _SCORE_OF_FIELDS and is_dataclass(cls)

    @classmethod
    @begun_in_place
    async def grade(
        cls,
        weight: float = 1.0,
        name: str | None = None,
        *,
        gate: bool = False,
        **parameters: object,
    ) -> SubScore:
        """Run the grader and package the result.

        Args:
            weight: Weight in a composed grade; negative for a penalty.
            name: Name of the component; the grader's own by default.
            gate: Whether it only disqualifies instead of adding credit.
            **parameters: What ``compute_score`` takes. A JSON-safe, bounded copy with secrets
                redacted is kept in the metadata under ``_parameters``.

        Raises:
            InputError: For a parameter that ``compute_score`` does not take.
            GraderError: If the grader failed; `combine` turns it into a node of its own.
        """
        label = name or cls.name
        node: AskedNode = {"name": label, "weight": checked_weight(weight, label), "gate": gate}
        try:
            cls.check_parameters(parameters)
        except InputError as error:
            error.subscore = SubScore.error(**node, reason=str(error))
            raise
        recorded: dict[str, Json] = {"_parameters": cls.record(parameters)}
        scored = cls._settle(await cls._compute(parameters), node, recorded, parameters)
        if isinstance(scored, GraderError):
            raise scored
        return scored

    @classmethod
    def record(cls, parameters: Mapping[str, object]) -> dict[str, Json]:
        """What is kept of the parameters beside the score, safe and bounded; override for less."""
        threads = {k: v.to_dict() for k, v in parameters.items() if isinstance(v, StringThread)}
        return record_parameters({**parameters, **threads} if threads else parameters)

    @classmethod
    async def score_each(
        cls,
        node: AskedNode,
        calls: Sequence[Mapping[str, object]],
        record: Mapping[str, Json],
        told: Mapping[str, Json] | None = None,
        *,
        explained: bool = False,
    ) -> list[SubScore | GraderError]:
        """Compute many scores and put each into a node; the one place where graders are called.

        ``node``: What all nodes have in common.
        ``calls``: What ``compute_score`` is called with, already checked.
        ``record``: What is kept in the metadata under ``_parameters``, and beside it ``told``.
        ``explained``: Whether each bare number gets its evidence now. Of many, equal numbers make
        equal nodes, which costs far less; they are explained when they are looked at.

        Returns in the order of the calls the node, or what went wrong with the error node as its
        ``subscore``.
        """
        recorded: dict[str, Json] = {"_parameters": dict(record), **(told or {})}
        try:
            alone = len(calls) == 1
            scores = [await cls._compute(calls[0])] if alone else await cls.compute_many(calls)
        except BaseException as error:
            if not is_fault(error):
                raise
            scores = [error] * len(calls)
        if len(scores) != len(calls):
            wrong = f"{cls.__name__} gave {len(scores)} scores for {len(calls)} submissions"
            scores = [GraderError(wrong)] * len(calls)
        settled: dict[float, SubScore | GraderError] = {}
        found: list[SubScore | GraderError] = []
        for call, score in zip(calls, scores, strict=True):
            if explained or type(score) is not float:
                found.append(cls._settle(score, node, recorded, call))
                continue
            if score not in settled:  # equal numbers make equal nodes: one does for all
                settled[score] = cls._settle(score, node, recorded)
            found.append(settled[score])
        return found

    @classmethod
    async def compute_many(
        cls, calls: Sequence[Mapping[str, object]]
    ) -> Sequence[Score | BaseException]:
        """What came of several calls, in order; override where a batch costs less than its items.

        It is what ``compute_score`` returned or raised; `most_at_once` are under way at a time.
        """
        if cls.is_pure:
            if (turn := current_turn()) is None:
                return [await cls._compute(call) for call in calls]
            found: list[Score | BaseException] = []
            turn.begin()
            for call in calls:
                found.append(await cls._compute(call))
                turn.next()
            return found
        from assay.graders.driver import each

        return await each(calls, cls._compute, at_once=cls.most_at_once)

    @classmethod
    async def _compute(cls, call: Mapping[str, object]) -> Score | BaseException:
        try:
            if current_turn() is None or cls.is_pure or cls._is_async():
                returned = cls.compute_score(**call)
            else:  # what may take long holds up none of the other items
                from assay.graders.threads import in_thread

                returned = await own_task(in_thread(partial(cls.compute_score, **call)))
            if type(returned) is not float and inspect.isawaitable(returned):
                returned = await own_task(returned)
            return cast("Score", returned)
        except BaseException as error:
            if not is_fault(error):
                raise
            return error

    @classmethod
    def _is_async(cls) -> bool:
        """Whether what its author wrote can wait without holding up others."""
        written = cls.score if cls._has_fields() else cls.compute_score
        return inspect.iscoroutinefunction(written)

    @classmethod
    def explain(cls, value: float, parameters: Mapping[str, object]) -> dict[str, Json]:
        """Evidence for a bare number, where somebody may look; override to have any."""
        del value, parameters
        return {}

    @classmethod
    def explained(cls, value: float, parameters: Mapping[str, object]) -> dict[str, Json]:
        """What `explain` says; a score stands also where that fails, whoever made it fail."""
        try:
            return cls.explain(value, parameters)
        except Exception as error:
            return {"decided": f"it could not be explained: {reason_of(error)[:500]}"}

    @classmethod
    def parameters(cls) -> tuple[dict[str, Parameter], bool]:
        """What it takes by name, and whether it takes any other name too."""
        if not cls._has_fields():
            return signature_parameters(cls.compute_score)
        parts, takes_any = signature_parameters(cls.score)
        own = {name: part for name, part in parts.items() if name != "self"}
        return {**field_parameters(cls), **own}, takes_any

    @classmethod
    def options_type(cls) -> type[object]:
        """The dataclass whose fields are the options, described in its ``Attributes:``."""
        return cls

    @classmethod
    def check_options(cls, options: Mapping[str, Json]) -> None:
        """Check what a declaration says beyond names and types."""
        if cls._has_fields():
            known = field_parameters(cls)
            cls(**{name: option for name, option in options.items() if name in known})

    @classmethod
    def rests_on(cls, options: Mapping[str, Json]) -> Json:
        """What else decides the scores of a declaration, for its digest; None for nothing."""
        del options
        return None

    @classmethod
    def of_row(cls, option: object) -> object:
        """An option that a row gives, as the grader takes it; override to mark it."""
        return option

    @classmethod
    def separable(cls, options: Mapping[str, Json], tree: str | None = None) -> bool | None:
        """Whether its tests can be judged in a process of their own; None where it runs none.

        ``tree``: The source that a case starts from, if it is at hand.
        """
        del options, tree
        return None

    @classmethod
    def models_of(cls, options: Mapping[str, Json]) -> Sequence[str]:
        """References of the models that a declaration asks; most ask none."""
        del options
        return ()

    @classmethod
    def handed(cls, options: Mapping[str, Json]) -> tuple[int, int]:
        """How a batch is best handed to it: so many together, so often at the same time."""
        del options
        return 1, cls.most_at_once

    @classmethod
    def best_assurance(cls, options: Mapping[str, Json]) -> Assurance | None:
        """The strongest assurance that a score of a declaration can have; None where unknown."""
        del options
        return cls.assurance

    @classmethod
    def pays_for_nothing(cls, options: Mapping[str, Json]) -> Sequence[str]:
        """What of a declaration is met whatever the work is, as sentences for its author."""
        del options
        return ()

    @classmethod
    def check_parameters(cls, parameters: Mapping[str, object]) -> None:
        """Refuse parameters that ``compute_score`` does not take or that are missing."""
        known, takes_any = cls.parameters()
        for name in parameters:
            if name not in known and not takes_any:
                valid = [*known, *_OF_ALL]
                raise InputError(
                    f"{cls.__name__} takes no parameter {name!r}", hint=nearest(name, valid)
                )
        missing = [p.name for p in known.values() if p.required and p.name not in parameters]
        if missing:
            raise InputError(f"{cls.__name__} needs {', '.join(map(repr, missing))}")

    @classmethod
    def any(cls, weight: float, subscores: list[SubScore]) -> SubScore:
        """Boolean OR of resolved subscores, named after the grader."""
        return combine_any(weight, subscores, name=f"{cls.name}_any")

    @classmethod
    def all(cls, weight: float, subscores: list[SubScore]) -> SubScore:
        """Boolean AND of resolved subscores, named after the grader."""
        return combine_all(weight, subscores, name=f"{cls.name}_all")

    @classmethod
    def _settle(
        cls,
        score: Score | BaseException,
        node: AskedNode,
        recorded: Mapping[str, Json],
        call: Mapping[str, object] | None = None,
    ) -> SubScore | GraderError:
        """The node of a score; with the call that it is of, a bare number is explained."""
        if isinstance(score, BaseException):
            return cls._failure(score, node, recorded)
        if call is not None and type(score) is float and (why := cls.explained(score, call)):
            score = score, why
        try:
            packaged = cls._package(score, node, recorded)
        except BaseException as error:
            if not is_fault(error):
                raise
            return cls._failure(error, node, recorded)
        if packaged.status == "error":  # said rather than raised, to keep what is known
            failure = GraderError(f"{packaged.name}: {packaged.reason}")
            failure.subscore = packaged
            return failure
        return packaged

    @classmethod
    def _package(cls, score: object, node: AskedNode, recorded: Mapping[str, Json]) -> SubScore:
        if isinstance(score, SubScore):
            assurance = score.assurance
            if assurance is None and score.status == "scored":
                own = score.weakest_assurance
                assurance = cls.assurance if own is None else weakest((cls.assurance, own))
            return SubScore(  # written out: `replace` takes three times as long
                **node,
                value=score.value,
                metadata={**(score.metadata or {}), **recorded},
                children=score.children,
                status=score.status,
                reason=score.reason,
                passed=score.passed,
                flags=score.flags,
                assurance=assurance,
                raw_weight=score.raw_weight,
            )
        evidence: dict[str, Json] = {}
        if isinstance(score, tuple):
            pair = cast("tuple[object, ...]", score)
            if len(pair) != 2 or not isinstance(pair[1], Mapping | None):
                kinds = ", ".join(type(item).__name__ for item in pair)
                raise GraderError(
                    f"{cls.__name__} returned a tuple of ({kinds})",
                    hint="return a number, (number, mapping) or a SubScore",
                )
            score, details = pair
            if details:
                entries = cast("Mapping[object, object]", details)
                evidence = record_evidence({str(key): item for key, item in entries.items()})
        value = unrounded(finite_number(score, what=f"the score of {cls.__name__}"), 0.0, 1.0)
        return SubScore(
            **node,
            value=value,
            metadata={**evidence, **recorded} if evidence else recorded,
            assurance=cls.assurance,
        )

    @classmethod
    def _failure(
        cls, error: BaseException, node: AskedNode, recorded: Mapping[str, Json]
    ) -> GraderError:
        reason, trace = reason_of(error), traceback_of(error)
        failure = GraderError(f"{node['name']}: {reason}")
        told = {**({"traceback": trace} if trace else {}), **recorded}
        failure.subscore = SubScore.error(**node, reason=reason, metadata=told)
        failure.__cause__ = error
        return failure


_SCORE_OF_FIELDS = vars(Grader)["compute_score"].__func__


_MADE: dict[tuple[type[Grader], str], Grader] = {}
_MOST_MADE = 128
_SCALARS = frozenset({type(None), bool, int, float, str})


def _is_plain(value: object) -> bool:
    """Whether it is made of JSON's own types alone: other objects can look alike in a ``repr``."""
    if type(value) is dict:
        entries = cast("dict[object, object]", value)
        return all(map(_is_plain, entries)) and all(map(_is_plain, entries.values()))
    if type(value) in (list, tuple):
        return all(map(_is_plain, cast("Sequence[object]", value)))
    return type(value) in _SCALARS


def _hints(annotated: object) -> dict[str, object]:
    import typing

    try:
        return typing.get_type_hints(annotated, include_extras=True, localns={"Json": object})
    except (NameError, AttributeError, TypeError):  # not importable: only names can be checked
        return {}


@lru_cache(maxsize=128)
def field_parameters(kind: type[object]) -> dict[str, Parameter]:
    """The fields of a dataclass as parameters; none of any other class."""
    if not is_dataclass(kind):
        return {}
    hints = _hints(kind)
    known: dict[str, Parameter] = {}
    for field in fields(kind):
        if not field.init:
            continue
        default: object = None if field.default is MISSING else field.default
        required = field.default is MISSING and field.default_factory is MISSING
        known[field.name] = Parameter(field.name, hints.get(field.name, object), required, default)
    return known


@lru_cache(maxsize=512)
def signature_parameters(function: object) -> tuple[dict[str, Parameter], bool]:
    """The named parameters of a function, and whether it takes any other keyword too."""
    hints = _hints(function)
    known: dict[str, Parameter] = {}
    takes_any = False
    for parameter in inspect.signature(cast("type[object]", function)).parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            takes_any = True
        elif parameter.kind is not parameter.VAR_POSITIONAL:
            required = parameter.default is parameter.empty
            known[parameter.name] = Parameter(
                name=parameter.name,
                annotation=hints.get(parameter.name, object),
                required=required,
                default=None if required else parameter.default,
            )
    return known, takes_any
