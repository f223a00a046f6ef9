"""Exercism's Python exercises: every published solution against the tests of its exercise."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bench.proof.material import Case, Difference, Source
from bench.proof.suites import Exercise, proven, published

ABOUT = "the example solution of 140 exercises gets everything, and no stub passes"
SOURCE = Source("exercism/python", "9eb657d4507d91efef99f484e7f2a1f4074911b5", "MIT")
AGREE, OF = 836, 840
DIFFERENCES = (
    Difference(
        "markdown/floor *",
        "theirs",
        "The exercise is to rewrite code that passes its tests as it is given.",
    ),
    Difference(
        "paasio/apart",
        "by design",
        "The tests replace `super` in the solution's module by a class of their own.",
    ),
)


def cases(directory: Path) -> Iterator[Case]:
    """Each check of each exercise."""
    practice = directory / "exercises" / "practice"
    return proven(
        _exercise(place)
        for place in sorted(practice.glob("*"))
        if (place / ".meta/config.json").is_file()
    )


def _exercise(place: Path) -> Exercise:
    of = published(place)
    return Exercise(place.name, of.given, of.tests, of.solution)
