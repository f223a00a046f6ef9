"""Functions as graders: what they are given, what comes of it, and every way to use them."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from assay.errors import GraderError, InputError, ProgramError
from assay.graders import Grader
from assay.graders.apply import grade_many, grade_submission
from assay.graders.base import Score
from assay.graders.digest import grader_digest
from assay.graders.function import FunctionGrader
from assay.graders.functions import (
    MAX_SOURCE_BYTES,
    FunctionSource,
    Isolation,
    grade_functions,
    read_source,
    validate_function,
)
from assay.graders.functions.grading import call_of, graded_from, payload_of, thread_of, too_long
from assay.graders.spec import GraderSpec, declared
from assay.sandbox.functions import Outcome, OutcomeStatus
from assay.scoring import Json
from assay.scoring.results import SubScore
from assay.tasks.grader_files import load_graders
from assay.tasks.rows import read_row
from assay.types import StringThread, Submission
from assay.types.picture import Picture
from tests.each import each
from tests.pictures import png, url

HEAD = "async def grade(thread: StringThread) -> float:\n"
EXACT = HEAD + "    return float(thread.completion() == thread.metadata.get('expected'))\n"
GOOD = ("good", Submission(answer="4", question="2+2?", expected="4"))
BAD = ("bad", Submission(answer="5", question="2+2?", expected="4"))

sandbox = pytest.mark.sandbox


def spec(source: str = EXACT, **options: Json) -> GraderSpec:
    return GraderSpec(type="function", options={"source": source, **options})


ASKED = StringThread([("user", "2+2?")], {"own": 1})


_Q, _A = ("user", "2+2?"), ("assistant", "4")


@each(
    ("submission", "turns", "metadata"),
    [
        (GOOD[1], [_Q, _A], {"expected": "4"}),
        (Submission(answer=""), [("assistant", "")], {}),
        (
            Submission(thread=ASKED.assistant("4"), answer="4", question="2+2?", metadata={"m": 2}),
            *([_Q, _A], {"m": 2, "own": 1}),
        ),
        (
            Submission(thread=ASKED.assistant("4").user("sure?")),
            *([_Q, _A, ("user", "sure?")], {"own": 1}),
        ),
        (
            Submission(answer="4", expected="4", metadata={"expected": None}),
            [_A],
            {"expected": "4"},
        ),
        (Submission(thread=ASKED, answer="4"), [_Q, _A], {"own": 1}),
        (
            Submission(thread=ASKED.assistant("3"), answer="4", expected=[4]),
            *([_Q, ("assistant", "3"), _A], {"own": 1, "expected": [4]}),
        ),
        (Submission(answer="4", expected="4", metadata={"expected": "x"}), [_A], {"expected": "x"}),
    ],
)
def test_what_a_function_is_given(
    submission: Submission, turns: list[tuple[str, str]], metadata: dict[str, Json]
) -> None:
    made = thread_of(submission)
    assert made.get_turns() == turns
    assert made.metadata == metadata
    assert submission.answer is None or made.completion() == submission.answer
    source = FunctionSource(text="async def grade(thread): return 1.0")
    assert call_of("0", submission, 1 << 20, source) == payload_of(made)


def test_what_cannot_be_given_is_refused() -> None:
    for nobody in (Submission(question="2+2?"), Submission(thread=ASKED)):
        with pytest.raises(InputError, match="nothing to grade: no answer, and no assistant turn"):
            thread_of(nobody)
    for wrong in ({"a": float("nan")}, {"a": {1}}):
        with pytest.raises(InputError, match="not JSON"):
            payload_of(StringThread([], cast("dict[str, Json]", wrong)))
    half = StringThread([("user", "\ud800")])
    assert StringThread.from_dict(json.loads(payload_of(half))) == half


@sandbox
async def test_a_question_that_nobody_answered_earns_nothing() -> None:
    """A function that looks for mistakes found none in a row without an answer: full score."""
    kind = HEAD + "    return 0.0 if 'sorry' in (thread.completion() or '') else 1.0\n"
    misspelt = StringThread([("user", "2+2?"), ("asistant", "sorry")])
    items = [
        ("unanswered", Submission(thread=ASKED, question="2+2?")),
        ("misspelt", Submission(thread=misspelt)),
        ("null", Submission(answer=None, question="2+2?")),
        ("empty", Submission(answer="", question="2+2?")),
        ("goes on", Submission(thread=ASKED.assistant("sorry").tool("ok"))),
    ]
    found = await grade_functions(FunctionSource(text=kind), items)
    assert [(g.status, g.outcome, g.score) for g in found] == [
        *[("error", "no_answer", None)] * 3,
        ("scored", "ok", 1.0),
        ("scored", "ok", 1.0),
    ]
    assert {g.error for g in found[:3]} == {
        "there is nothing to grade: no answer, and no assistant turn"
    }
    (one,) = await grade_many([spec(kind)], items[:1])
    assert (one.status, one.score, one.outcome) == ("error", None, "no_answer")
    report = await validate_function(kind, samples=items)
    assert report.valid
    assert [g.outcome for g in report.samples[:3]] == ["no_answer"] * 3


@each(
    ("outcome", "status", "score", "flags"),
    [
        ("error", "error", None, ()),
        ("bad_return", "error", None, ()),
        ("sandbox_error", "error", None, ()),
        ("cpu_timeout", "scored", 0.0, ("timed_out",)),
        ("wall_timeout", "scored", 0.0, ("timed_out",)),
        ("memory", "scored", 0.0, ("out_of_memory",)),
        ("crash", "scored", 0.0, ("crashed",)),
        ("recursion", "scored", 0.0, ("nested_too_deeply",)),
    ],
)
def test_an_outcome_is_blamed_on_whose_fault_it_is(
    outcome: OutcomeStatus, status: str, score: float | None, flags: tuple[str, ...]
) -> None:
    happened = Outcome(status=outcome, message="why", output="said", retried=True)
    graded = graded_from("a", happened, FunctionSource(text=EXACT))
    assert (graded.status, graded.score, graded.flags) == (status, score, flags)
    assert graded.outcome == outcome
    assert graded.details["output"] == "said"
    assert bool(graded.error) == (status == "error")
    assert graded.digest


def test_a_timeout_and_an_answer_that_is_too_long_are_worth_the_worst_score() -> None:
    """Of a function that returns -1 for nonsense, to hang it was worth more than the nonsense.

    And a longer answer than the sandbox takes must not turn a certain 0 into an excluded error.
    """
    source = FunctionSource(text=EXACT, range=(-1.0, 1.0))
    assert graded_from("a", Outcome(status="cpu_timeout"), source).score == -1.0
    answer = StringThread([("user", "q"), ("assistant", "x" * 1_000)])
    graded = too_long("a", answer, 500, source)
    assert (graded.status, graded.score, graded.flags) == ("scored", -1.0, ("too_long",))
    others = StringThread([("assistant", "x")], {"k": "x" * 1_000})
    assert too_long("a", others, 500, source).status == "error", "not of the answer"


def test_a_source_is_refused_where_it_is_none(tmp_path: Path) -> None:
    for wrong in ((1.0, 1.0), (2.0, 1.0), (float("nan"), 1.0), (-1.7e308, 1.7e308)):
        with pytest.raises(InputError, match="lower one first"):
            FunctionSource(text=EXACT, range=wrong)
    with pytest.raises(InputError, match="isolation"):
        FunctionSource(text=EXACT, isolation=cast("None", "thread"))  # type: ignore[arg-type]
    with pytest.raises(InputError, match=f"limit {MAX_SOURCE_BYTES}"):
        FunctionSource(text="#" * (MAX_SOURCE_BYTES + 1)).program()
    file = tmp_path / "grade.py"
    for content, why in ((b"\xff", "grade.py:1: not UTF-8"), (b"#" * 70_000, "longer than")):
        file.write_bytes(content)
        with pytest.raises(InputError, match=why):
            read_source(str(file))
    file.write_bytes(b"\xef\xbb\xbf" + b"#" * MAX_SOURCE_BYTES)
    assert len(read_source(str(file))) == MAX_SOURCE_BYTES
    with pytest.raises(InputError, match="cannot read"):
        read_source(str(tmp_path))


def test_digests_tell_functions_apart_and_cover_the_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    from assay.graders import digest

    sources = [
        FunctionSource(text=EXACT),
        FunctionSource(text=EXACT + "#"),
        FunctionSource(text=EXACT, isolation="batch"),
        FunctionSource(text=EXACT, range=(0.0, 2.0)),
    ]
    found = [source.digest for source in sources]
    assert len(set(found)) == 4
    assert FunctionSource(text=EXACT).digest == found[0]
    assert grader_digest(spec(isolation="call")) == found[0]
    read: list[str] = []
    real = Path.read_bytes

    def noted(self: Path) -> bytes:
        read.append(self.name)
        return real(self)

    monkeypatch.setattr(Path, "read_bytes", noted)
    digest._foundation.__wrapped__()
    assert "thread.py" in read


@sandbox
async def test_items_are_graded_with_raw_scores_and_their_evidence() -> None:
    source = HEAD + "    print(thread.completion())\n    return -3 * len(thread.completion())\n"
    graded = await grade_functions(FunctionSource(text=source), [GOOD, BAD])
    assert [(g.id, g.status, g.score) for g in graded] == [
        ("good", "scored", -3.0),
        ("bad", "scored", -3.0),
    ]
    assert graded[0].details["output"] == "4\n"
    assert len({g.digest for g in graded}) == 1
    with pytest.raises(ProgramError):
        await grade_functions(FunctionSource(text="x = 1 / 0"), [GOOD])


@sandbox
async def test_a_function_is_given_pictures_byte_for_byte() -> None:
    """The digest is taken in there, of what came in."""
    told = HEAD + (
        "    [one] = thread.images()\n"
        "    print(one.digest, one.media_type, one.width, one.height)\n"
        "    return float(one.data[:4] == b'\\x89PNG' and thread.completion() == 'red')\n"
    )
    shown = read_row({"answer": "red", "images": [url(png())]}).submission
    [graded] = await grade_functions(FunctionSource(text=told), [("a", shown)])
    assert graded.score == 1.0, graded
    assert graded.details["output"] == f"{Picture(png()).digest} image/png 2 2\n"


@sandbox
@each("isolation", ["call", "batch"])
async def test_no_call_sees_what_another_one_left_behind_unless_that_is_asked_for(
    isolation: Isolation,
) -> None:
    source = "seen = []\n" + HEAD + "    seen.append(1)\n    return len(seen) / 10\n"
    made = FunctionSource(text=source, isolation=isolation, range=(0.0, 2.0))
    scores = {g.score for g in await grade_functions(made, [GOOD] * 20)}
    assert (scores == {0.1}) == (isolation == "call")


@sandbox
async def test_many_are_graded_as_each_would_be() -> None:
    items = [GOOD, BAD, ("none", Submission(question="?"))]
    many = await grade_many([spec()], items)
    for (item, submission), graded in zip(items, many, strict=True):
        alone = await grade_submission([spec()], submission)
        assert (graded.id, graded.score, graded.status) == (item, alone.reward, alone.status)
    assert [g.score for g in many] == [1.0, 0.0, None]
    assert many[0].digest == grader_digest(spec())
    assert many[2].error == "there is nothing to grade: no answer, and no assistant turn"


@sandbox
async def test_a_function_among_declared_graders(tmp_path: Path) -> None:
    (tmp_path / "grade.py").write_text(HEAD + "    return len(thread.completion())\n", "utf-8")
    text = "- {type: function, file: grade.py, range: [0, 4], name: length, weight: 3}\n"
    (tmp_path / "graders.yaml").write_text(text + "- {type: exact_match}\n", "utf-8")
    graders = load_graders(str(tmp_path / "graders.yaml"))
    result = await grade_submission(graders, Submission(answer="ab", expected="ab"))
    assert result.reward == pytest.approx(0.75 * 0.5 + 0.25)
    length = next(iter(result.subscores or []))
    assert (length.name, length.value) == ("length", 0.5)
    assert (length.metadata or {})["score"] == 2.0
    error = await grade_submission(graders, Submission(answer="abcde", expected="ab"))
    assert error.isError
    assert "outside its range [0, 4]" in (error.content or "")


@sandbox
async def test_one_by_hand_and_what_is_recorded_of_it() -> None:
    long = EXACT + "#" * 5_000
    node = await FunctionGrader.grade(source=long, answer="4", expected="4")
    assert node.value == 1.0
    recorded = cast("dict[str, Json]", (node.metadata or {})["_parameters"])
    assert len(str(recorded["source"])) < 300
    thread = StringThread([("assistant", "4")], {"expected": "4"})
    node = await FunctionGrader.grade(source=EXACT, thread=thread)
    recorded = cast("dict[str, Json]", (node.metadata or {})["_parameters"])
    assert recorded["thread"] == thread.to_dict()
    source = HEAD + "    return 3 / (3**0.5 * 3**0.5)\n"  # a little more than 1
    assert (await FunctionGrader.grade(source=source, answer="4")).value == 1.0
    with pytest.raises(GraderError, match=r"1\.5, outside \[0, 1\]; declare its range"):
        await FunctionGrader.grade(source=HEAD + "    return 1.5\n", answer="4")
    with pytest.raises(GraderError) as caught:
        await FunctionGrader.grade(source=HEAD + "    print('x')\n    return 1 / 0\n", answer="4")
    node = cast("SubScore", caught.value.subscore)
    assert node.status == "error"
    assert (node.metadata or {})["output"] == "x\n"


@each(
    ("yaml", "why"),
    [
        ("- {type: function}", "file or source is needed"),
        ("- {type: function, file: missing.py}", "'missing.py' does not exist"),
        ("- {type: function, source: 'x', range: [1]}", "range must be two numbers"),
        ("- {type: function, source: 'x', range: [1, 0]}", "lower one first"),
    ],
)
def test_a_declaration_is_checked_where_it_stands(yaml: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        load_graders(yaml)


class Slow(Grader):
    """Counts how many of it run at once."""

    name = "slow"
    running = 0
    most = 0

    @classmethod
    async def compute_score(cls, answer: str) -> float:
        cls.running += 1
        cls.most = max(cls.most, cls.running)
        await asyncio.sleep(0)
        cls.running -= 1
        if answer == "boom":
            raise ValueError(answer)
        return float(answer)


async def test_a_batch_of_any_grader_is_bounded_and_keeps_its_order_and_its_reasons() -> None:
    items = [(str(n), Submission(answer=str(n / 100))) for n in range(100)]
    spec_ = replace(declared(Slow, {}), gate=True, weight=9)
    *good, boom = await grade_many([spec_], [*items, ("boom", Submission(answer="boom"))])
    assert [(g.id, g.score) for g in good] == [(str(n), n / 100) for n in range(100)]
    assert "_parameters" in good[0].details
    assert boom.score is None
    assert boom.error.startswith("ValueError: boom (tests/graders/test_function.py:")
    assert Slow.most == Slow.most_at_once


class Short(Grader):
    """Loses a score on the way."""

    name = "short"

    @classmethod
    async def compute_score(cls, answer: str) -> float:
        return 1.0

    @classmethod
    async def compute_many(cls, calls: object) -> list[Score | BaseException]:
        return [1.0]


async def test_a_batch_that_loses_scores_is_an_error_and_never_shifts_them() -> None:
    graded = await grade_many([declared(Short, {})], [GOOD, BAD])
    assert [g.status for g in graded] == ["error", "error"]
    assert "gave 1 scores for 2 submissions" in graded[0].error


async def test_attack_an_answer_nested_deeply_made_an_error_of_its_score() -> None:
    """What an answer can bring about is the worst score: an error would have left it out."""
    source = (
        "import json\n" + HEAD + "    text = thread.completion()\n"
        "    if text == 'big': raise MemoryError\n"
        "    return float(json.loads(text) == 1)\n"
    )
    items = [(text[:3], Submission(answer=text)) for text in ("1", "[" * 100_000, "big")]
    found = await grade_functions(FunctionSource(text=source, range=(-1.0, 1.0)), items)
    assert [(g.status, g.score, g.flags) for g in found] == [
        ("scored", 1.0, ()),
        ("scored", -1.0, ("nested_too_deeply",)),
        ("scored", -1.0, ("out_of_memory",)),
    ]
