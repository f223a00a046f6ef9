"""Inspect's own tests of its scorers, by the comparisons of texts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from assay.graders import choice_match, exact_match, f1_score, math_equal, numeric_match
from bench.proof.material import Case, Difference, Source
from bench.proof.their_tests import Inexpressible, StandIns, Whatever
from bench.proof.their_tests import cases as cases_of

ABOUT = "comparisons say of answers what the tests of Inspect's scorers say: match, pattern, math …"
SOURCE = Source("UKGovernmentBEIS/inspect_ai", "499e6152e7b8fc8cbd8ac5283536572aa6e4ab17", "MIT")
_INSIDE = "It is a test of how Inspect reads and runs, not of a verdict."
_SEVERAL = "There is one right option, and one group of a pattern that is compared."
_UNDONE = "An answer may not leave to the grader what is to be computed."
_BOXES = "Boxes side by side are one answer of several values, and a box written wrong is none."
_WORDS = (
    "Brackets around a number, a currency sign and Chinese numerals count. As SQuAD has it, "
    "articles do not."
)
AGREE, OF = 141, 201
DIFFERENCES = (
    Difference("*", "by design", _INSIDE, said="needs the fixture *"),
    Difference("*", "by design", _INSIDE, said="needs inspect_ai.*"),
    Difference("test_pattern:test_match_all_unmatched*", "by design", _INSIDE),
    Difference(
        "test_match:*",
        "by design",
        "A number anywhere in an answer would pass one that lists them all.",
        said="needs a number anywhere*",
    ),
    Difference(
        "test_match:test_numeric_exact_rejects_trailing_alpha:*",
        "by design",
        "What stands behind a number is its unit.",
    ),
    Difference(
        "test_match:test_non_numeric_match_plain:*",
        "theirs",
        "Of `28 + 32 = 60%` the answer is not 32.",
    ),
    Difference("test_match:test_numeric_chinese*", "by design", _WORDS),
    Difference("test_classification:test_*_punctuation:*", "by design", _WORDS),
    Difference("test_classification:test_remove_punc*", "by design", _WORDS),
    Difference(
        "*", "assay", "No option leaves words out of `f1_score`.", said="needs words that do not*"
    ),
    Difference("test_pattern:*", "assay", _SEVERAL, said="needs several groups*"),
    Difference("test_choice:*", "assay", _SEVERAL, said="needs several options*"),
    Difference(
        "test_choice:*",
        "by design",
        "Options are shuffled before the question is put, and a question has two or more.",
    ),
    Difference("test_math:test_math_scorer_compatibility_cases:11", "by design", _UNDONE),
    Difference("test_math:test_math_scorer_compatibility_cases:32", "by design", _UNDONE),
    Difference("test_math:test_math_scorer_compatibility_cases:30", "by design", _BOXES),
    Difference("test_math:test_final_boxed*", "by design", _BOXES),
    Difference(
        "test_math:test_percentage_suffixes*",
        "assay",
        "A percentage of a fraction of LaTeX is not read as a number.",
    ),
    Difference(
        "test_math:test_invalid_target*",
        "by design",
        "A reference that is no formula is compared as text. Inspect gives no score.",
    ),
)
_FILES = ("match", "answer", "pattern", "choice", "classification", "math")
_LEFT_OUT = (
    "test_scorer_runs_under_unguarded_top_level_entry",  # starts Inspect in a process of its own
    "test_math_scorer_matches_real_answer_corpus",  # downloads answers that are not in the clone
)


def cases(directory: Path) -> Iterator[Case]:
    """Each test of six files."""
    for name in _FILES:
        file = directory / f"tests/scorer/test_{name}.py"
        if file.is_file():
            yield from cases_of(file, _STAND_INS, leave_out=_LEFT_OUT)


class _Target(list[str]):
    """What is right: a text or several."""

    def __init__(self, of: str | Sequence[str]) -> None:
        super().__init__([of] if isinstance(of, str) else of)


class _Choices(list[str]):
    """The options of a question; a test marks which of them the model chose."""

    def mark_choice(self, number: int, chosen: bool) -> None:  # noqa: FBT001 - a call of theirs
        """Nothing: here the answer is read."""

    def shuffle(self, _chance: object) -> None:
        raise Inexpressible("options that are shuffled within a grader")


@dataclass(frozen=True, slots=True)
class _State:
    """What the model said, and what it was asked."""

    model_output: str
    choices: _Choices


@dataclass(frozen=True, slots=True)
class _Score:
    value: str
    answer: object = field(default_factory=Whatever)
    explanation: object = field(default_factory=Whatever)
    metadata: object = field(default_factory=Whatever)

    @property
    def text(self) -> str:
        return self.value


_Scorer: TypeAlias = Callable[[_State, _Target], Awaitable[_Score]]
_CORRECT, _INCORRECT = "C", "I"


def _scorer(compared: Callable[[_State, str], float]) -> _Scorer:
    """A scorer that accepts what is equal to any of the right texts."""

    async def score(state: _State, target: _Target) -> _Score:
        right = any(compared(state, one) == 1.0 for one in target)
        return _Score(_CORRECT if right else _INCORRECT)

    return score


def _match(location: str = "end", *, numeric: bool = False) -> _Scorer:
    if not numeric:
        raise Inexpressible("a text at the end of an answer")
    if location == "any":
        raise Inexpressible("a number anywhere in an answer")
    if location == "exact":
        return _scorer(lambda state, one: numeric_match(state.model_output, one, extract=_ONE_WORD))
    pick = "first" if location == "begin" else "last"
    return _scorer(lambda state, one: numeric_match(state.model_output, one, pick=pick))


_ONE_WORD = r"\A\s*(\S+)\s*\z"


def _pattern(pattern: str, *, ignore_case: bool = True, **_: object) -> _Scorer:
    if pattern.count("(") > 1:
        raise Inexpressible("several groups of a pattern")
    extract = f"(?i){pattern}" if ignore_case else pattern
    return _scorer(
        lambda state, one: exact_match(state.model_output, one, extract=extract, pick="first")
    )


_ANSWERS = {
    "letter": r"(?i)ANSWER\s*:\s*([A-Z])\b",
    "word": r"(?i)ANSWER\s*:\s*(\S+?)[.,;:!?]?\s*(?:\n|\z)",
    "line": r"(?i)ANSWER\s*:\s*([^\n]+)",
}


def _answer(pattern: str) -> _Scorer:
    extract = _ANSWERS[pattern]
    return _scorer(lambda state, one: exact_match(state.model_output, one, extract=extract))


def _choice() -> _Scorer:
    async def score(state: _State, target: _Target) -> _Score:
        letters = [*"ABCDEFGH"[: len(state.choices)]]
        if len(target) != 1 or target[0] not in letters:
            raise Inexpressible("several options, or none, as the right answer")
        right = choice_match(state.model_output, target[0], choices=letters) == 1.0
        return _Score(_CORRECT if right else _INCORRECT)

    return score


def _exact() -> _Scorer:
    return _scorer(lambda state, one: exact_match(state.model_output, one))


def _f1(stop_words: object = None) -> _Scorer:
    if stop_words:
        raise Inexpressible("words that do not count")

    async def score(state: _State, target: _Target) -> _Score:
        return _Score(str(round(_best(f1_score, state.model_output, target), 2)))

    return score


def _best(grader: Callable[[str, str], float], answer: str, right: Iterable[str]) -> float:
    return max(grader(answer, one) for one in right)


def _max_exact(answer: str, right: Iterable[str]) -> float:
    return _best(exact_match, answer, right)


def _max_f1(answer: str, right: Iterable[str]) -> float:
    return _best(f1_score, answer, right)


def _math() -> _Scorer:
    return _scorer(lambda state, one: math_equal(state.model_output, one))


class _Wrong:
    """That an answer is not right, whichever of their reasons it has."""

    def __eq__(self, other: object) -> bool:
        return other in ("incorrect", "answer_parse_error")

    __hash__ = None  # pyright: ignore[reportAssignmentType]


@dataclass(frozen=True, slots=True)
class _Graded:
    status: object


def _parsed(targets: tuple[str, ...]) -> tuple[tuple[str, ...], None]:
    return targets, None


def _graded(answer: str, targets: tuple[str, ...]) -> _Graded:
    right = _best(math_equal, answer, targets) == 1.0
    return _Graded("correct" if right else _Wrong())


def _state(model_output: str, choices: Sequence[str] = ()) -> _State:
    return _State(model_output, _Choices(choices))


def _always(_package: str) -> Callable[[object], object]:
    return lambda test: test


_VERDICTS = {"CORRECT": _CORRECT, "INCORRECT": _INCORRECT, "NOANSWER": _INCORRECT}
"""What has no answer earns as much as what is wrong."""
_STAND_INS = StandIns(
    {
        "inspect_ai.scorer": {
            **_VERDICTS,
            "Target": _Target,
            "answer": _answer,
            "choice": _choice,
            "match": _match,
            "math": _math,
            "pattern": _pattern,
        },
        "inspect_ai.scorer._classification": {
            "exact": _exact,
            "f1": _f1,
            "max_exact_score": _max_exact,
            "max_f1_score": _max_f1,
        },
        "inspect_ai.scorer._math": {
            "_parse_targets_worker": _parsed,
            "_score_answer_worker": _graded,
            "_MathLimitError": LookupError,
            "_MathParseError": LookupError,
        },
        "inspect_ai.scorer._metric": _VERDICTS,
        "test_helpers.utils": {"simple_task_state": _state, "skip_if_no_package": _always},
    }
)
