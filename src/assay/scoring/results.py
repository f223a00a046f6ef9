"""The score tree: `SubScore` is a node, `EvaluationResult` the combined grade.

A value exists only where something was graded. A grader that does not apply is ``skipped``, one
that could not judge is an ``error``; neither has a number, so no sum can mistake it for a 0.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Literal, TypeAlias, get_args

from assay.errors import ScoreError, nearest
from assay.frozen import frozen
from assay.scoring.json_safe import Json, json_safe, plain

Status: TypeAlias = Literal["scored", "skipped", "error"]
_STATUSES = ("scored", "skipped", "error")
_HEAVIEST = 1e100
"""Weights beyond this are refused: their sum would come near the end of the float range."""

_ROUNDING = 1e-9

Assurance: TypeAlias = Literal["separate", "shared", "reported", "status", "read", "model"]
"""How far a score can be trusted: in what way its grader learnt what it says.

``separate`` (the judge shares no process with what it judges, and decides on values), ``shared``
(tests share a process with the submission), ``reported`` (JUnit or console text, which the
submission's processes can write), ``status`` (the exit status of a command that runs its code),
``read`` (files, syntax and traces are read), ``model`` (a language model decides).
"""
ASSURANCES: tuple[Assurance, ...] = get_args(Assurance)
"""The strongest first."""


def weakest(words: Iterable[Assurance | None]) -> Assurance | None:
    """The weakest of the words; None where none is said."""
    said = set(words)
    return next((word for word in reversed(ASSURANCES) if word in said), None)


def reaches(word: Assurance | None, least: Assurance | None) -> bool:
    """Whether a score of one assurance will do where another is the least that is needed."""
    if word is None or least is None:
        return least is None
    return ASSURANCES.index(word) <= ASSURANCES.index(least)


def assurance_from(word: object) -> Assurance | None:
    """Read what `Assurance` a score says that it has; None for None."""
    if word is None:
        return None
    for known in ASSURANCES:
        if known == word:
            return known
    hint = nearest(str(word), list(ASSURANCES))
    raise ScoreError(f"unknown assurance {word!r:.80}", hint=hint)


RESULT_KEYS = frozenset({"reward", "score", "done", "content", "info", "isError", "subscores"})
"""What a result has to say, under the names of its JSON form."""


def finite_number(value: object, *, what: str) -> float:
    """Check that something is a usable number and return it as a float.

    Returns the number; 0.0 for -0.0, so that one grade has one text.
    """
    if type(value) is float and math.isfinite(value):
        return value or 0.0
    if isinstance(value, bool):
        raise ScoreError(f"{what} is a bool", hint="give 1.0 or 0.0")
    if not isinstance(value, numbers.Real):  # so that a numpy.float32 is one too
        raise ScoreError(f"{what} must be a number, got {type(value).__name__}")
    try:
        number = float(value)
    except OverflowError:
        raise ScoreError(f"{what} is too large for a float") from None
    if not math.isfinite(number):
        raise ScoreError(f"{what} is {number}", hint="a score must be finite")
    return number or 0.0


def unrounded(number: float, low: float, high: float) -> float:
    """A score; the end of its range if rounding alone carried it past, as a cosine past 1."""
    if low <= number <= high:
        return number
    end = low if number < low else high
    return end if abs(number - end) <= _ROUNDING * (high - low) else number


def checked_weight(weight: float, name: str) -> float:
    """The weight of what is called so, if it can be one."""
    if type(weight) is float and 0.0 < weight <= _HEAVIEST:  # as most are
        return weight
    if not _is_usable(weight):
        weight = finite_number(weight, what=f"the weight of {name!r}")
    if not -_HEAVIEST <= weight <= _HEAVIEST:
        raise ScoreError(f"the weight of {name!r} is {weight}", hint="at most 1e100")
    return weight


def _is_usable(value: float) -> bool:
    """Whether it is what `finite_number` would return."""
    if type(value) is not float or not math.isfinite(value):
        return False
    return value != 0.0 or math.copysign(1.0, value) > 0.0


@frozen
class SubScore:
    """One component of a grade.

    Attributes:
        name: What was graded; made unique when scores are combined.
        value: In [0, 1] where ``status`` is ``"scored"``, else None.
        weight: Share of the credit; positive weights are normalised when combined, a negative one
            is a penalty, 0 only reports.
        metadata: Evidence as plain JSON: outputs, verdicts, reasons, parameters. ``info`` is the
            same, as HUD calls it.
        children: The nodes this one was made from.
        status: ``scored``, ``skipped`` (does not apply: leaves the weighting) or ``error`` (could
            not be graded).
        gate: A gate adds no credit and makes the combined reward 0 unless its value is 1.
        reason: Why it was skipped or is an error, or a one-line explanation of the score.
        passed: Whether the grader itself calls this a pass; by default a value of 1, which is
            what a gate always needs.
        flags: Signs of tampering found by the grader.
        assurance: How far the score can be trusted; None leaves that to its children.
        raw_weight: The weight that was declared, where ``weight`` is a share of it.

    Raises:
        ScoreError: For a value or weight that may not be a score, and an unknown assurance.
    """

    name: str
    value: float | None = None
    weight: float = 1.0
    metadata: Mapping[str, Json] | None = None
    children: Sequence[SubScore] | None = None
    status: Status = "scored"
    gate: bool = False
    reason: str = ""
    passed: bool | None = None
    flags: Sequence[str] = ()
    assurance: Assurance | None = None
    raw_weight: float | None = None

    def __init__(  # noqa: PLR0917 - the fields in their order; no field of a dataclass has two names
        self,
        name: str,
        value: float | None = None,
        weight: float = 1.0,
        metadata: Mapping[str, Json] | None = None,
        children: Sequence[SubScore] | None = None,
        status: Status = "scored",
        gate: bool = False,  # noqa: FBT001, FBT002 - the order of the fields
        reason: str = "",
        passed: bool | None = None,  # noqa: FBT001
        flags: Sequence[str] = (),
        assurance: Assurance | None = None,
        raw_weight: float | None = None,
        *,
        info: Mapping[str, Json] | None = None,
    ) -> None:
        if info is not None:
            if metadata is not None:
                raise ScoreError(
                    f"{name!r} has metadata and info, which are one thing", hint="give one of them"
                )
            metadata = info
        put = object.__setattr__
        put(self, "name", name)
        put(self, "value", value)
        put(self, "weight", weight)
        put(self, "metadata", metadata)
        put(self, "children", children)
        put(self, "status", status)
        put(self, "gate", gate)
        put(self, "reason", reason)
        put(self, "passed", passed)
        put(self, "flags", flags)
        put(self, "assurance", assurance)
        put(self, "raw_weight", raw_weight)
        self.__post_init__()

    def __post_init__(self) -> None:
        if not self.name:
            raise ScoreError("a SubScore needs a name")
        if self.status not in _STATUSES:
            raise ScoreError(
                f"status of {self.name!r} is {self.status!r}", hint="scored, skipped or error"
            )
        assurance_from(self.assurance)
        # Written again only where something changes: scores are made by the million in training.
        if type(self.flags) is not tuple:
            object.__setattr__(self, "flags", tuple(self.flags))
        if self.children is not None:
            object.__setattr__(self, "children", tuple(self.children))
        if (weight := checked_weight(self.weight, self.name)) is not self.weight:
            object.__setattr__(self, "weight", weight)
        value = self.value
        if self.status == "scored":
            if value is None or not _is_usable(value):
                value = finite_number(value, what=f"the value of {self.name!r}")
                object.__setattr__(self, "value", value)
            if not 0.0 <= value <= 1.0:
                raise ScoreError(
                    f"the value of {self.name!r} is {value}", hint="it must be in [0, 1]"
                )
            if self.passed is None or (self.gate and value < 1.0):
                object.__setattr__(self, "passed", value >= 1.0)
        elif value is not None:
            raise ScoreError(f"{self.name!r} is {self.status} and cannot have a value")

    @classmethod
    def error(
        cls,
        name: str,
        reason: str,
        *,
        weight: float = 1.0,
        gate: bool = False,
        metadata: Mapping[str, Json] | None = None,
    ) -> SubScore:
        """A node for a grader that could not judge."""
        return cls(
            name=name, weight=weight, gate=gate, metadata=metadata, status="error", reason=reason
        )

    @classmethod
    def skipped(
        cls, name: str, reason: str, *, weight: float = 1.0, gate: bool = False
    ) -> SubScore:
        """A node for a grader that does not apply."""
        return cls(name=name, weight=weight, gate=gate, status="skipped", reason=reason)

    @property
    def info(self) -> Mapping[str, Json] | None:
        """The metadata, under its newer name."""
        return self.metadata

    @property
    def score(self) -> float:
        """The value as a number.

        Raises:
            ScoreError: If nothing was scored.
        """
        if self.value is None:
            raise ScoreError(f"{self.name!r} has no score: it is {self.status}", hint=self.reason)
        return self.value

    @property
    def weakest_assurance(self) -> Assurance | None:
        """Its own word, else the weakest of its scored children; None where nothing says."""
        if self.assurance is not None or not self.children:
            return self.assurance
        return weakest(c.weakest_assurance for c in self.children if c.status == "scored")

    def _repr_html_(self) -> str:
        from assay.scoring.notebook import tree_html

        return tree_html((self,))

    def to_dict(self) -> dict[str, Json]:
        """This node and all below it as plain JSON."""
        declared: dict[str, Json] = (
            {} if self.raw_weight is None else {"raw_weight": self.raw_weight}
        )
        return {
            "name": self.name,
            "status": self.status,
            "value": self.value,
            "weight": self.weight,
            **declared,
            "gate": self.gate,
            "passed": self.passed,
            "reason": self.reason,
            "flags": list(self.flags),
            "assurance": self.assurance,
            "metadata": None if self.metadata is None else plain(self.metadata),
            "children": None if self.children is None else [c.to_dict() for c in self.children],
        }

    def model_dump(self, *, mode: Literal["json", "python"] = "json") -> dict[str, Json]:
        """`to_dict` with ``info`` for ``metadata``, as code written for HUD asks for it."""
        del mode
        return _hud_keys(self.to_dict())

    def to_summary(self) -> dict[str, Json]:
        """`model_dump` without the evidence, here and in all below."""
        return _hud_keys(self.to_dict(), evidence=False)

    @classmethod
    def model_validate(cls, data: Mapping[str, Json]) -> SubScore:
        """`from_dict`, as code written for HUD calls it."""
        return cls.from_dict(data)

    @classmethod
    def from_dict(cls, data: Mapping[str, Json]) -> SubScore:
        """Read back what `to_dict` wrote.

        Raises:
            ScoreError: For a malformed node.
        """
        children = data.get("children")
        metadata = data.get("metadata", data.get("info"))
        status = data.get("status", "scored")
        flags = data.get("flags")
        passed = data.get("passed")
        if status not in _STATUSES:
            raise ScoreError(f"status {status!r} is not one of {', '.join(_STATUSES)}")
        value, declared = data.get("value"), data.get("raw_weight")
        return cls(
            name=str(data.get("name") or ""),
            value=None if value is None else finite_number(value, what="value"),
            weight=finite_number(data.get("weight", 1.0), what="weight"),
            metadata=metadata if isinstance(metadata, dict) else None,
            children=[cls.from_dict(c) for c in children if isinstance(c, dict)]
            if isinstance(children, list)
            else None,
            status=status,
            gate=data.get("gate") is True,
            reason=str(data.get("reason") or ""),
            passed=passed if isinstance(passed, bool) else None,
            flags=tuple(str(flag) for flag in flags) if isinstance(flags, list) else (),
            assurance=assurance_from(data.get("assurance")),
            raw_weight=None if declared is None else finite_number(declared, what="raw_weight"),
        )


@frozen
class EvaluationResult:
    """The combined grade of one piece of work, as a task yields it.

    Attributes:
        reward: The final score. None where nothing could be graded (``isError``) or nothing
            applied; a 0.0 always means graded, and bad.
        done: Whether the episode is complete.
        content: Human-readable explanation.
        info: Extra metadata.
        isError: Whether grading itself failed.
        subscores: Optional breakdown.

    Raises:
        ScoreError: For a NaN, infinite, bool or non-numeric reward.
    """

    reward: float | None = 0.0
    done: bool = True
    content: str | None = None
    info: Mapping[str, Json] = field(default_factory=dict[str, Json])
    isError: bool = False
    subscores: Sequence[SubScore] | None = None

    def __post_init__(self) -> None:
        if self.isError:
            object.__setattr__(self, "reward", None)
        elif self.reward is not None and not _is_usable(self.reward):
            object.__setattr__(self, "reward", finite_number(self.reward, what="the reward"))

    @classmethod
    def from_float(cls, value: float) -> EvaluationResult:
        """Wrap a bare reward."""
        return cls(reward=value)

    @classmethod
    def from_error(cls, reason: str, **info: object) -> EvaluationResult:
        """A result that says why grading failed; it has no reward."""
        return cls(isError=True, content=reason, info={k: json_safe(v) for k, v in info.items()})

    @property
    def status(self) -> Status:
        """``error``, ``skipped`` (nothing applied) or ``scored``."""
        if self.isError:
            return "error"
        return "skipped" if self.reward is None else "scored"

    @property
    def not_graded(self) -> tuple[float, Mapping[str, str]]:
        """The share of the weight that was skipped, and why by grader, gates and penalties too.

        Of a combination, as of `combine_all`, each input has an equal share.
        """
        nodes = [node for node in self.subscores or () if node.gate or node.weight]
        parts = [_not_graded(node, node.name) for node in nodes]
        skipped = {name: why for _, graders in parts for name, why in graders.items()}
        if not skipped:
            return 0.0, {}
        credit = [
            (node.weight, share)
            for node, (share, _) in zip(nodes, parts, strict=True)
            if node.weight > 0 and not node.gate
        ]
        total = math.fsum(weight for weight, _ in credit)
        left = math.fsum(weight * share for weight, share in credit)
        return (left / total if total else 0.0), skipped

    @property
    def flags(self) -> tuple[str, ...]:
        """Every sign of tampering, each once: those in ``info``, then those in the tree."""
        own = self.info.get("flags")
        if own is None and not any(node.flags or node.children for node in self.subscores or ()):
            return ()
        named = [str(flag) for flag in own] if isinstance(own, list) else []
        return tuple(dict.fromkeys([*named, *_flags(self.subscores or ())]))

    @property
    def assurance(self) -> Assurance | None:
        """The weakest assurance of the scored nodes that give credit.

        None where nothing says, and where there is no reward.
        """
        if self.reward is None:
            return None
        said: set[Assurance | None] = {
            node.weakest_assurance
            for node in self.subscores or ()
            if node.status == "scored" and node.weight > 0 and not node.gate
        }
        return said.pop() if len(said) == 1 else weakest(said)

    def _repr_html_(self) -> str:
        from assay.scoring.notebook import result_html

        return result_html(self)

    def to_dict(self) -> dict[str, Json]:
        """The result as plain JSON."""
        return {
            "reward": self.reward,
            "done": self.done,
            "content": self.content,
            "info": plain(self.info),
            "isError": self.isError,
            "subscores": None if self.subscores is None else [s.to_dict() for s in self.subscores],
        }

    def model_dump(self, *, mode: Literal["json", "python"] = "json") -> dict[str, Json]:
        """`to_dict` with ``info`` for the ``metadata`` of subscores, as HUD calls it."""
        del mode
        nodes = self.subscores
        written: Json = None if nodes is None else [node.model_dump() for node in nodes]
        return {**self.to_dict(), "subscores": written}

    @classmethod
    def model_validate(cls, data: Mapping[str, Json]) -> EvaluationResult:
        """`from_dict`, as code written for HUD calls it."""
        return cls.from_dict(data)

    @classmethod
    def from_dict(cls, data: Mapping[str, Json]) -> EvaluationResult:
        """Read back what `to_dict` wrote; ``score`` is accepted for ``reward``.

        Raises:
            ScoreError: For a malformed result, including an unknown key, which is named.
        """
        if unknown := sorted(set(data) - RESULT_KEYS):
            raise ScoreError(
                f"unknown key {unknown[0]!r} in an evaluation result",
                hint=nearest(unknown[0], sorted(RESULT_KEYS)),
            )
        reward = data.get("score", data.get("reward"))
        info, subscores, content = data.get("info"), data.get("subscores"), data.get("content")
        is_error = data.get("isError") is True
        if reward is None and not is_error and "reward" not in data and "score" not in data:
            raise ScoreError("an evaluation result needs a 'reward' (or 'score')")
        return cls(
            reward=None if reward is None else finite_number(reward, what="the reward"),
            done=data.get("done") is not False,
            content=content if isinstance(content, str) else None,
            info=info if isinstance(info, dict) else {},
            isError=is_error,
            subscores=[SubScore.from_dict(s) for s in subscores if isinstance(s, dict)]
            if isinstance(subscores, list)
            else None,
        )


def _hud_keys(node: Mapping[str, Json], *, evidence: bool = True) -> dict[str, Json]:
    """A node's dict with ``info`` for ``metadata``, or without either."""
    found = {key: value for key, value in node.items() if key != "metadata"}
    if evidence:
        found["info"] = node.get("metadata")
    children = node.get("children")
    if isinstance(children, list):
        inner = [child for child in children if isinstance(child, dict)]
        found["children"] = [_hud_keys(child, evidence=evidence) for child in inner]
    return found


def _not_graded(node: SubScore, name: str) -> tuple[float, dict[str, str]]:
    """The share of a node that was skipped, and why: all of it, or inputs of what it combines."""
    if node.status == "skipped":
        return 1.0, {name: node.reason}
    inputs = node.children or ()
    if not inputs or (node.metadata or {}).get("subscores") != [one.name for one in inputs]:
        return 0.0, {}  # the parts of a grader of its own, whose value says what they come to
    parts = [_not_graded(one, f"{name}/{one.name}") for one in inputs]
    share = math.fsum(share for share, _ in parts) / len(parts)
    return share, {name: why for _, graders in parts for name, why in graders.items()}


def _flags(nodes: Sequence[SubScore]) -> list[str]:
    found: list[str] = []
    for node in nodes:
        found.extend(node.flags)
        found.extend(_flags(node.children or ()))
    return found
