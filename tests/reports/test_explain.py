"""The verdict as a sentence, and the score tree as text."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from assay.reports.explain import evidence, in_words, nodes, sentence, tree
from assay.scoring.combine import combine_scores
from assay.scoring.json_safe import Json
from assay.scoring.results import SubScore
from assay.store.records import CellRecord
from tests.each import each


def graded(*parts: SubScore, reward: float | None = None, threshold: float = 0.7) -> CellRecord:
    """A cell as it is stored when these parts are combined."""
    if reward is None:
        reward = combine_scores(parts, clamp=True).reward
    assert reward is not None
    return CellRecord(
        run_id="r",
        case="c",
        status="graded",
        reward=reward,
        passed=reward >= threshold,
        threshold=threshold,
        subscores=tuple(part.to_dict() for part in parts),
    )


TESTS = SubScore("tests", 1.0, weight=0.5)
JUDGE = SubScore("judge", 0.4, weight=0.3)
FORMAT = SubScore("format", 0.0, weight=0.2)
GATE = SubScore("implemented", 1.0, gate=True)
NO_GATE = SubScore("implemented", 0.0, gate=True)


SENTENCES = {
    "weighted sum": graded(TESTS, JUDGE, FORMAT, GATE),
    "weights are normalised": graded(SubScore("a", 1.0, weight=3), SubScore("b", 0.5, weight=1)),
    "failed gate": graded(TESTS, NO_GATE),
    "penalty": graded(SubScore("a", 1.0), SubScore("slow", 0.5, weight=-0.4)),
    "clamped": graded(SubScore("a", 0.0), SubScore("slow", 1.0, weight=-0.4)),
    "not a sum": graded(SubScore("a", 1.0), reward=0.3),
    "skipped part": graded(SubScore("a", 1.0), SubScore.skipped("judge", "offline")),
    "only reported": graded(SubScore("a", 1.0), SubScore("len", 0.3, weight=0)),
    "failed gate beside an error": graded(TESTS, NO_GATE, SubScore.error("judge", "down")),
    "bare reward": graded(reward=0.9),
    "digits enough to tell": graded(reward=0.6996),
    "skipped": CellRecord(run_id="r", case="c", status="skipped", content="no trace"),
    "error keeps what was graded": replace(
        graded(SubScore("tests", 0.25), SubScore.error("judge", "503"), reward=0.0),
        status="error",
        error="judge: 503",
    ),
    "recorded verdict": CellRecord(run_id="r", case="c", status="graded", reward=0.9, passed=False),
    "record contradicts itself": replace(graded(reward=0.9, threshold=0.5), passed=False),
    "a name that would forge the sentence": graded(SubScore("x; needs 0.10 → pass\n✓ tests", 0.0)),
    "many parts": graded(*(SubScore(f"p{n}", 1.0) for n in range(20))),
}


def test_the_verdict_is_a_sentence(snapshot: SnapshotAssertion) -> None:
    assert {name: sentence(cell) for name, cell in SENTENCES.items()} == snapshot


@given(
    st.lists(st.tuples(st.floats(0, 1), st.floats(0.01, 9), st.booleans()), min_size=1, max_size=6)
)
def test_the_sentence_never_calls_a_combined_reward_another_sum(
    parts: list[tuple[float, float, bool]],
) -> None:
    made = [SubScore("base", 1.0)]
    made += [SubScore("p", v, weight=-w if penalty else w) for v, w, penalty in parts]
    assert "not the sum" not in sentence(graded(*made))


def test_the_tree_shows_status_value_weight_and_depth(snapshot: SnapshotAssertion) -> None:
    both = SubScore("both", 0.5, weight=0.5, children=[SubScore("a", 1.0), SubScore("b", 0.5)])
    shown = tree([both, GATE, SubScore.error("judge", "x"), SubScore.skipped("trace", "y")])
    assert shown == snapshot
    # A gate below one has failed even if its grader was content.
    assert tree([SubScore("g", 0.9, gate=True, passed=True)]) == ["✗ 0.90 g (gate)"]
    assert tree([SubScore(f"n{n}", 1.0) for n in range(9)], limit=2)[2:] == ["… 7 more"]


def nested(levels: int) -> dict[str, Json]:
    node: dict[str, Json] = {"name": "leaf", "value": 1.0}
    for _ in range(levels):
        node = {"name": "n", "value": 1.0, "children": [node]}
    return node


@each(
    ("stored", "reason"),
    [
        ({"name": "x", "value": 7}, "unreadable: the value of 'x' is 7"),
        ({"name": "x", "value": float("nan")}, "unreadable: value is nan"),
        ({"value": 1.0}, "unreadable: a SubScore needs a name"),
        ({"name": "x", "status": ["?"]}, "unreadable: status"),
        (nested(3_000), "more than 24 levels"),
    ],
)
def test_a_stored_score_that_is_not_one_becomes_an_error_node(
    stored: dict[str, Json], reason: str
) -> None:
    cell = CellRecord(run_id="r", case="c", status="error", subscores=(stored,))
    (node,) = nodes(cell)
    assert node.status == "error"
    assert reason in node.reason


def facts(**metadata: Any) -> dict[str, tuple[str, ...]]:
    node = SubScore("n", 0.0, metadata=metadata, reason="why", flags=("odd",))
    found = evidence(node, lines=2)
    assert len({fact.label for fact in found}) == len(found)
    return {fact.label: fact.lines for fact in found}


def test_evidence_comes_in_the_order_of_questions_cut_and_without_what_says_nothing() -> None:
    shown = facts(model="m", stdout="a\nb\nc", exit_code=1, verdict="UNMET", _parameters={"x": 1})
    assert list(shown) == ["reason", "flagged", "exit code", "verdict", "stdout", "model"]
    assert shown["exit code"] == ("1",)
    zero = facts(exit_code=0, timed_out=False)
    assert (zero["exit code"], zero["timed out"]) == (("0",), ("no",))
    nothing_twice = facts(reason="why", stderr="", notes=None, tags=[])
    assert list(nothing_twice) == ["reason", "flagged"], "and nothing empty"
    # Of outputs the end is kept, of all else the start.
    shown = facts(stdout="a\nb\nc", explanation="a\nb\nc")
    assert shown["stdout"] == ("… 1 line before", "b", "c")
    assert shown["explanation"] == ("a", "b", "… 1 line more")


def test_long_evidence_is_laid_out_over_lines() -> None:
    node = SubScore("n", 0.0, metadata={"cases": {f"case {n}": "expected" for n in range(9)}})
    (fact,) = evidence(node, lines=3)
    assert fact.lines == (*(f"case {n}: expected" for n in range(3)), "… 6 lines more")


def test_each_test_is_a_line_with_its_message_below_it() -> None:
    failed: dict[str, Json] = {"id": "t.py::b", "outcome": "failed", "message": "2 != 3\nin b"}
    told: list[Json] = [{"id": "t.py::a", "outcome": "passed"}, failed]
    said = ("passed: t.py::a", "failed: t.py::b", "    2 != 3", "    in b")
    assert [one.lines for one in evidence(SubScore("n", 0.5, metadata={"tests": told}))] == [said]
    assert facts(tests=[*told, "c"])["tests"][-1].startswith("… ")  # as any other list


def test_evidence_is_words_and_not_raw_json_also_what_is_none(snapshot: SnapshotAssertion) -> None:
    calls = [{"tool": "grep", "seconds": 0.25}, {"tool": "edit", "files": ["a.py", "b.py"]}]
    assert in_words({"a": 1, "b": 2.5}) == ["a 1, b 2.5"]
    assert in_words({"calls": calls, "found": True, "left": [], "why": None}) == snapshot
    assert facts(x={"v": float("nan")})["x"] == ("v: nothing",)
    assert facts(x="\x1b]8;;http://evil\x1b\\t")["x"] == ("t",)
