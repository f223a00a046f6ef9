"""In which order tests run: shuffled if that is allowed, with the canaries anywhere among them."""

from __future__ import annotations

import random
from itertools import groupby
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

    Place = tuple[Hashable, Hashable]

_Test = TypeVar("_Test")


def arrange(
    tests: list[_Test],
    place: Callable[[_Test], Place],
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
    runs = [(at, list(those)) for at, those in groupby(tests, place)]
    if shuffle:
        runs = _shuffled(runs, draw)
    for file, canary in canaries.items():
        spots = [spot for n, (at, _) in enumerate(runs) if at[0] == file for spot in (n, n + 1)]
        if spots:
            runs.insert(draw.choice(spots), ((file, None), [canary]))
    files = [at[0] for at, _ in runs]
    spots = [n for n in range(len(runs) + 1) if n in (0, len(runs)) or files[n - 1] != files[n]]
    runs.insert(draw.choice(spots), ((None, None), [lone]))
    return [test for _, those in runs for test in those]


def _shuffled(
    runs: list[tuple[Place, list[_Test]]], draw: random.Random
) -> list[tuple[Place, list[_Test]]]:
    """Files in another order, and within each its groups; what belongs together is joined."""
    files: dict[Hashable, dict[Place, list[_Test]]] = {}
    for at, tests in runs:
        files.setdefault(at[0], {}).setdefault(at, []).extend(tests)
    order = list(files.values())
    draw.shuffle(order)
    mixed: list[tuple[Place, list[_Test]]] = []
    for groups in order:
        within = list(groups.items())
        draw.shuffle(within)
        mixed.extend(within)
    return mixed
