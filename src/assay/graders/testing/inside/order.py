"""In which order tests run: shuffled if that is allowed, with the canaries anywhere among them."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

_Test = TypeVar("_Test")


class _Run(Generic[_Test]):
    """Tests that stay together: those of a class, or the variants of a function."""

    def __init__(self, file: Hashable, group: Hashable) -> None:
        self.file = file
        self.group = group
        self.tests: list[_Test] = []


def arrange(
    tests: list[_Test],
    place: Callable[[_Test], tuple[Hashable, Hashable]],
    canaries: Mapping[Hashable, _Test],
    lone: _Test,
    seed: int,
    *,
    shuffle: bool,
) -> list[_Test]:
    """Put tests in order.

    The tests of a class keep their order and no canary comes between them: what is set up for the
    class is set up once.

    Args:
        tests: As they were collected.
        place: File of a test, and its class or function.
        canaries: By the file among whose tests each is to run.
        lone: The canary that runs between files.
        seed: Of the order.
        shuffle: Whether files, and classes and functions within a file, may change places.
    """
    draw = random.Random(seed)  # noqa: S311 - an order, not a secret
    runs = _runs(tests, place)
    if shuffle:
        runs = _shuffled(runs, draw)
    for file, canary in canaries.items():
        spots = [index for index, run in enumerate(runs) if run.file == file]
        spots += [index + 1 for index in spots]
        if spots:
            _insert(runs, draw.choice(spots), file, canary)
    spots = [
        index
        for index in range(len(runs) + 1)
        if index in (0, len(runs)) or runs[index - 1].file != runs[index].file
    ]
    _insert(runs, draw.choice(spots), None, lone)
    return [test for run in runs for test in run.tests]


def _runs(
    tests: list[_Test], place: Callable[[_Test], tuple[Hashable, Hashable]]
) -> list[_Run[_Test]]:
    runs: list[_Run[_Test]] = []
    for test in tests:
        file, group = place(test)
        if not runs or (runs[-1].file, runs[-1].group) != (file, group):
            runs.append(_Run(file, group))
        runs[-1].tests.append(test)
    return runs


def _shuffled(runs: list[_Run[_Test]], draw: random.Random) -> list[_Run[_Test]]:
    files: dict[Hashable, dict[Hashable, _Run[_Test]]] = {}
    for run in runs:
        known = files.setdefault(run.file, {}).setdefault(run.group, run)
        if known is not run:
            known.tests.extend(run.tests)
    mixed: list[_Run[_Test]] = []
    order = list(files.values())
    draw.shuffle(order)
    for groups in order:
        within = list(groups.values())
        draw.shuffle(within)
        mixed.extend(within)
    return mixed


def _insert(runs: list[_Run[_Test]], spot: int, file: Hashable, test: _Test) -> None:
    run: _Run[_Test] = _Run(file, "canary")
    run.tests.append(test)
    runs.insert(spot, run)
