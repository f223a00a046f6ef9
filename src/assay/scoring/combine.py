"""From subscores to one reward: one formula for every way of grading.

With positive weights ``w`` of scored, non-gate nodes, their sum ``P``, and penalties (negative
weights) kept as they are::

    reward = sum(value * w / P for w > 0) + sum(value * w for w < 0)

and 0 if any gate is below 1. The reward is not clamped here; a case clamps its own.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from contextvars import copy_context
from functools import lru_cache
from opcode import opmap
from types import CodeType, CoroutineType, FunctionType
from typing import TypeVar, cast

from assay.errors import AssayError, ScoreError
from assay.frozen import changed
from assay.scoring.json_safe import Json
from assay.scoring.results import EvaluationResult, SubScore, weakest


async def combine(*items: SubScore | Awaitable[SubScore]) -> EvaluationResult:
    """Resolve subscores and grader coroutines in parallel and combine them.

    A grader that fails does not take its siblings with it: all are awaited, the failing one
    becomes a node with ``status="error"``, and the result is ``isError`` unless a gate has
    already decided on 0.

    Args:
        items: `SubScore` objects, or awaitables of them such as ``SomeGrader.grade(...)``.

    Returns:
        The weighted result, as `presented`; its ``reward`` is None when a grader failed or all
        were skipped.

    Raises:
        ScoreError: For no items, or no positive weight among them.
        TypeError: For an item that is neither a SubScore nor an awaitable.
    """
    waiting = _awaitables(items)
    if not waiting:
        return presented(combine_scores(cast("Sequence[SubScore]", items)))
    results = iter(await _all_of(waiting))
    nodes = [
        item if isinstance(item, SubScore) else _settled(next(results), item, number)
        for number, item in enumerate(items, 1)
    ]
    return presented(combine_scores(nodes))


def combine_scores(subscores: Sequence[SubScore], *, clamp: bool = False) -> EvaluationResult:
    """Combine subscores that are already resolved.

    Args:
        subscores: At least one, with at least one positive weight.
        clamp: Whether to bound the reward to [0, 1], as cases do.

    Raises:
        ScoreError: For no subscores, or none that could give credit.
    """
    if not subscores:
        raise ScoreError("subscores must not be empty")
    only = subscores[0]
    if len(subscores) == 1 and only.status == "scored" and only.weight > 0 and not only.gate:
        # The mean of one score is that score; its value is in [0, 1] already.
        return EvaluationResult(reward=only.value, subscores=[only])
    if not any(s.weight > 0 and not s.gate for s in subscores):
        raise ScoreError(
            "no subscore has a positive weight",
            hint="gates and penalties give no credit: add a grader with weight > 0",
        )
    nodes = unique_names(subscores)
    failed = {n.name: n.value for n in nodes if n.gate and n.value is not None and n.value < 1.0}
    failed_gates = list(failed)
    errors = [n for n in nodes if n.status == "error"]
    info: dict[str, Json] = {}
    if failed_gates:
        info["failed_gates"] = list[Json](failed_gates)
    if errors:
        info["errors"] = {node.name: node.reason for node in errors}
    if failed_gates:
        # A failed gate is 0 whatever a broken sibling would have said, so an agent cannot turn a
        # certain 0 into an excluded error.
        said = (f"{name} ({value:.2g} of 1)" if value else name for name, value in failed.items())
        reward, content = 0.0, f"gate {', '.join(said)} did not pass"
    elif errors:
        content = "; ".join(f"{node.name}: {node.reason}" for node in errors)
        return EvaluationResult(isError=True, content=content, info=info, subscores=nodes)
    else:
        reward, content = _weighted(nodes), None
        if reward is None:
            why = (f"{node.name}: {node.reason}" for node in nodes if node.reason)
            content = "; ".join(why) or "every grader was skipped"
    if clamp and reward is not None:
        reward = min(1.0, max(0.0, reward))
    return EvaluationResult(reward=reward, content=content, info=info, subscores=nodes)


def presented(result: EvaluationResult) -> EvaluationResult:
    """A result whose weights are shares of the credit.

    Positive weights of the scored nodes sum to 1; what was declared is kept as ``raw_weight``.
    """
    nodes = result.subscores or ()
    credit = [node for node in nodes if node.weight > 0 and not node.gate]
    total = math.fsum(node.weight for node in credit if node.status == "scored")
    if result.reward is not None and total > 0 and total != 1.0:
        nodes = [
            changed(node, weight=node.weight / total, raw_weight=node.weight)
            if node.weight > 0 and not node.gate
            else node
            for node in nodes
        ]
    return changed(result, subscores=nodes)


def combine_any(weight: float, subscores: Iterable[SubScore], *, name: str = "any") -> SubScore:
    """Boolean OR: passes if any input passes (the maximum).

    An error decides nothing while another input already has the full value of 1.

    Raises:
        ScoreError: For no inputs.
    """
    return _collapse(weight, list(subscores), name=name, best=True)


def combine_all(weight: float, subscores: Iterable[SubScore], *, name: str = "all") -> SubScore:
    """Boolean AND: passes only if all inputs pass (the minimum).

    An error decides nothing while another input already has the value 0.

    Raises:
        ScoreError: For no inputs.
    """
    return _collapse(weight, list(subscores), name=name, best=False)


def unique_names(subscores: Sequence[SubScore]) -> list[SubScore]:
    """Give repeated names stable suffixes: ``x, x, y`` becomes ``x-1, x-2, y``.

    Suffixes that are taken by another subscore's own name are left out.
    """
    counts: dict[str, int] = {}
    for subscore in subscores:
        counts[subscore.name] = counts.get(subscore.name, 0) + 1
    if len(counts) == len(subscores):
        return list(subscores)
    taken = set(counts)
    last: dict[str, int] = {}
    renamed: list[SubScore] = []
    for subscore in subscores:
        if counts[name := subscore.name] > 1:
            number = last.get(name, 0) + 1
            while (suffixed := f"{name}-{number}") in taken:
                number += 1
            last[name] = number
            taken.add(suffixed)
            renamed.append(changed(subscore, name=suffixed))
        else:
            renamed.append(subscore)
    return renamed


def _weighted(nodes: Sequence[SubScore]) -> float | None:
    """The weighted sum over scored nodes, or None when no credit-giving one was scored."""
    counted = [(n.score, n.weight) for n in nodes if n.status == "scored" and not n.gate]
    given = [(score, weight) for score, weight in counted if weight > 0]
    total = math.fsum(weight for _, weight in given)
    if total <= 0:
        return None
    # Summed before it is divided, and exactly: ten full scores are 1.0, not 0.9999999999999999.
    credit = math.fsum(score * weight for score, weight in given) / total
    values = {score for score, _ in given}
    if len(values) == 1:  # which rounding would miss: 0.2 * 0.1 / 0.1 is 0.20000000000000004
        (credit,) = values
    return credit + math.fsum(score * weight for score, weight in counted if weight < 0)


def _collapse(weight: float, subscores: list[SubScore], *, name: str, best: bool) -> SubScore:
    if not subscores:
        raise ScoreError(f"{name!r} needs at least one subscore")
    children = unique_names(subscores)
    metadata: dict[str, Json] = {"subscores": [child.name for child in children]}
    evidence: dict[str, Json] = {
        child.name: dict(child.metadata) for child in children if child.metadata is not None
    }
    if evidence:
        metadata["subscore_metadata"] = evidence
    values = [child.value for child in children if child.value is not None]
    decisive = 1.0 if best else 0.0
    value = (max if best else min)(values) if values else None
    failed = [child for child in children if child.status == "error"]
    if value == decisive or (value is not None and not failed):
        scored = (child for child in children if child.status == "scored")
        return SubScore(
            name=name,
            value=value,
            weight=weight,
            metadata=metadata,
            children=children,
            assurance=weakest(child.weakest_assurance for child in scored),
        )
    status = "error" if failed else "skipped"
    reason = "; ".join(f"{c.name}: {c.reason}" for c in failed) or "every input was skipped"
    return SubScore(
        name=name, weight=weight, metadata=metadata, children=children, status=status, reason=reason
    )


_IN_PLACE: set[CodeType] = set()
"""The code of what is `begun_in_place`."""

_Function = TypeVar("_Function", bound=Callable[..., Coroutine[object, object, SubScore]])
_T = TypeVar("_T")


def begun_in_place(function: _Function) -> _Function:
    """Mark a coroutine function that awaits nothing but `own_task`: a task is made where it waits.

    `combine` begins it in its own task, since one of its own costs more than most graders do.
    """
    _IN_PLACE.add(cast("FunctionType", function).__code__)
    return function


async def own_task(work: Awaitable[_T]) -> _T:
    """Await something; where it may wait, `combine` has made a task for it before it begins."""
    code = _code_of(work)
    if code is None or not _never_waits(code):
        import asyncio

        try:
            await asyncio.sleep(0)
        except BaseException:  # nobody will await it now
            _close([work])
            raise
    return await work


def _code_of(work: object) -> CodeType | None:
    return work.cr_code if isinstance(work, CoroutineType) else None


@lru_cache(maxsize=1024)
def _never_waits(code: CodeType) -> bool:
    """Whether a coroutine has no ``await`` at all, so that it ends as soon as it begins."""
    return opmap["SEND"] not in code.co_code[::2]


async def _all_of(waiting: Sequence[Awaitable[SubScore]]) -> list[object]:
    """What each returned or raised. They run side by side from the first that waits."""
    ended: list[object] = []
    left = list(waiting)
    are_different = len(set(waiting)) == len(waiting)
    while left and are_different and _code_of(left[0]) in _IN_PLACE:
        work, context = cast("Coroutine[None, None, SubScore]", left[0]), copy_context()
        try:
            context.run(work.send, None)
        except StopIteration as done:
            ended.append(done.value)
        except Exception as error:
            ended.append(error)
        except BaseException:
            _close(left)
            raise
        else:
            import asyncio

            left[0] = asyncio.create_task(work, context=context)
            break
        del left[0]
    if left:
        import asyncio

        ended += await asyncio.gather(*left, return_exceptions=True)
    return ended


def _settled(result: object, item: Awaitable[SubScore], number: int) -> SubScore:
    """The node for what came of an awaitable."""
    if isinstance(result, SubScore):
        return result
    name = getattr(item, "__qualname__", "") or f"item-{number}"
    if isinstance(result, AssayError):
        return _failure(result, name)
    if isinstance(result, Exception):
        return SubScore.error(name, f"{type(result).__name__}: {result}")
    if isinstance(result, BaseException):  # cancelled: that is not a grade
        raise result
    kind = type(result).__name__
    return SubScore.error(name, f"expected a SubScore from the awaitable, got {kind}")


def _failure(error: AssayError, name: str) -> SubScore:
    """The node of a failed grader, with the name and weight that the grader was called with."""
    failed = error.subscore
    return failed if isinstance(failed, SubScore) else SubScore.error(name, str(error))


def _awaitables(items: Sequence[SubScore | Awaitable[SubScore]]) -> list[Awaitable[SubScore]]:
    """The items that have to be awaited, if all are what they should be."""
    waiting = [item for item in items if not isinstance(item, SubScore)]
    for item in waiting:
        if not isinstance(cast("object", item), (CoroutineType, Awaitable)):  # the first is quick
            _close(waiting)
            raise TypeError(f"Expected SubScore or Awaitable[SubScore], got {type(item).__name__}")
    return waiting


def _close(waiting: Iterable[Awaitable[object]]) -> None:
    """No coroutine that will not be awaited may leak."""
    for item in waiting:
        if isinstance(item, Coroutine):
            item.close()
