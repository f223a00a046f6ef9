"""Scores: appended, bounded, and as they were given; projects, keys and replies beside them."""

from __future__ import annotations

from datetime import datetime, timedelta
from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import ConflictError, InputError, NotFoundError, StoreError
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json
from assay.store import ApiKeys, Database, Projects, Replies, ScoreRecord, Scores
from assay.store.pages import Stretch, every
from tests.store.noon import NOON
from tests.store.unwritable import UNWRITABLE


@pytest.fixture
def scores(database: Database) -> Scores:
    return Scores(database)


def _record(item: str, grader: str = "g@1", score: float = 1.0) -> ScoreRecord:
    graded = Graded(id=item, status="scored", score=score, grader=grader)
    return ScoreRecord(item=item, source="user", graded=graded)


def test_outcomes_come_back_as_they_were_with_where_they_are_from(scores: Scores) -> None:
    assert scores.add("default", [_record("i")]) == 1
    (kept,) = scores.page("default")
    assert kept.to_dict() == {
        "seq": kept.seq,
        "project": "default",
        "item": "i",
        "job": "",
        "number": None,
        "source": "user",
        "graded": _record("i").graded.to_dict(),
        "created_at": "2026-11-21T12:00:00.000Z",
    }
    outcomes = [
        Graded(
            id="näher",
            status="scored",
            score=-12.5,
            outcome="cpu_timeout",
            reason="größer \ud800",
            flags=("timed_out", "odd"),
            details={"output": "\0", "times": [1, 2.5, None, True], "of": {"a": {}}},
            grader="exact@12",
            digest="d" * 64,
        ),
        Graded(id="", status="skipped", reason="does not apply", grader="no-version"),
        Graded.failed("i", "the judge is down", outcome="unreachable"),
        Graded(id="i", status="scored", score=0.0, grader="a@b@3"),
        Graded(id="i", status="scored", score=5e-324, grader="a@01"),
        Graded(id="i", status="scored", score=1.7976931348623157e308),
    ]
    scores.add("default", [ScoreRecord(item=graded.id, graded=graded) for graded in outcomes])
    assert [record.graded for record in scores.page("default")][1:] == outcomes


def test_scores_are_found_by_grader_version_and_item(scores: Scores, database: Database) -> None:
    Projects(database).create("other")
    scores.add("other", [_record("x", "g@1")])
    scores.add("default", [_record("a", "g@1"), _record("b", "g@2"), _record("b", "h@1")])
    found = {
        name: [record.item for record in scores.page("default", grader, item)]
        for name, grader, item in [
            ("g", "g", None), ("g@2", "g@2", None), ("b", None, "b"), ("g of b", "g", "b"),
            ("nobody", "G", None), ("hostile", "g' OR '1'='1", None), ("half", None, "\ud800"),
        ]
    }  # fmt: skip
    assert found == {
        "g": ["a", "b"], "g@2": ["b"], "b": ["b", "b"], "g of b": ["b"], "nobody": [],
        "hostile": [], "half": [],
    }  # fmt: skip


def test_long_evidence_is_shortened_not_refused(scores: Scores) -> None:
    """A grader that talks without end must not cost its own score."""
    details: dict[str, Json] = {"output": "x" * 1_000_000, "score": 1}
    flags = tuple(str(n) for n in range(500))
    graded = Graded(
        id="i", status="scored", score=1.0, reason="r" * 10_000, flags=flags, details=details
    )
    scores.add("default", [ScoreRecord(item="i", graded=graded)])
    kept = scores.page("default").items[0].graded
    assert (len(kept.reason), kept.reason[-1], len(kept.flags)) == (4096, "…", 64)
    assert kept.details["score"] == 1
    assert 50_000 < len(str(kept.details["output"])) < 300_000


def test_evidence_that_is_no_json_is_described(scores: Scores) -> None:
    for details in (*UNWRITABLE, {"nan": nan}):
        graded = Graded(id="i", status="scored", score=1.0, details=details)
        scores.add("default", [ScoreRecord(item="i", graded=graded)])
        (*_, kept) = scores.page("default")
        assert list(kept.graded.details) == list(details)
        assert kept.to_dict()


def test_scores_of_an_unknown_project_or_a_long_id_are_refused(scores: Scores) -> None:
    with pytest.raises(InputError, match="'item' has 513 characters; the most is 512"):
        scores.add("default", [_record("fine"), _record("x" * 513)])
    assert list(scores.page("default")) == []
    with pytest.raises(NotFoundError, match="no project 'nope'"):
        scores.add("nope", [_record("i")])
    with pytest.raises(NotFoundError, match="no project 'nope'"):
        scores.page("nope")


_BY_HAND = (
    "INSERT INTO score (project, item, source, grader_key, digest, evidence, created_at, status, "
    "score) VALUES ('default', 'i', 'user', 'g', '', '{}', '', ?, ?)"
)


def test_a_number_that_is_no_score_is_refused_even_by_hand(
    scores: Scores, database: Database
) -> None:
    for status, score in (
        ("scored", inf),
        ("scored", -inf),
        ("scored", nan),
        ("scored", None),
        ("error", 0.0),
    ):
        with pytest.raises(StoreError, match="refused what was to be stored"), database.writing():
            database.change(_BY_HAND, status, score)
    assert list(scores.page("default")) == []


def test_any_outcome_comes_back(scores: Scores) -> None:
    text = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=60)
    leaf = st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False)
    outcomes = st.builds(
        Graded,
        id=text,
        status=st.just("scored"),
        score=st.floats(allow_nan=False, allow_infinity=False),
        reason=st.text(max_size=60),
        flags=st.lists(st.text(max_size=9), max_size=4).map(tuple),
        details=st.dictionaries(st.text(), leaf.filter(lambda v: v not in (inf, -inf)), max_size=4),
        grader=text,
        digest=text,
    )

    @given(graded=outcomes)
    def check(graded: Graded) -> None:
        before = len(list(every(lambda wanted: scores.page("default", wanted=wanted))))
        scores.add("default", [ScoreRecord(item=graded.id, graded=graded)])
        (kept,) = scores.page("default", wanted=Stretch(offset=before))
        assert kept.graded == graded

    check()


def test_projects_are_made_once_and_one_is_always_there(database: Database) -> None:
    projects = Projects(database)
    (project,) = projects.all()
    assert (project.key, project.name) == ("default", "Default")
    assert datetime.fromisoformat(project.created_at).tzinfo
    made = projects.create("team-a", "Team Ä")
    assert projects.get("team-a") == made
    assert projects.ensure("team-a") == made
    assert projects.ensure("new").name == "new"
    with pytest.raises(ConflictError, match="already a project 'team-a'"):
        projects.create("team-a")
    assert [project.key for project in projects.all()] == ["default", "new", "team-a"]


def test_a_key_is_found_by_its_hash_until_it_is_revoked(database: Database) -> None:
    keys = ApiKeys(database)
    made = keys.create("CI", "editor", "default", "hash-1", "assay_ab12")
    assert keys.find("hash-1") == made == keys.get(made.id)
    assert keys.find("hash-2") is None
    assert keys.find("\ud800") is None
    assert "hash-1" not in str(made.to_dict())
    revoked = keys.revoke(made.id)
    assert revoked.revoked_at == "2026-11-21T12:00:00.000Z"
    assert keys.find("hash-1") is None
    database.clock = lambda: NOON + timedelta(days=1)
    assert keys.revoke(made.id) == revoked
    later = [keys.create(name, "viewer", "*", f"hash-{name}", "p").id for name in "abc"]
    assert [key.id for key in keys.page()] == [*later[::-1], made.id]


def test_a_key_is_found_until_it_expires(database: Database) -> None:
    keys = ApiKeys(database)
    made = keys.create(
        "CI", "editor", "default", "hash", "p", expires=NOON + timedelta(milliseconds=1)
    )
    assert made.expires_at == "2026-11-21T12:00:00.001Z"
    assert keys.find("hash") == made == keys.page().items[0]
    database.clock = lambda: NOON + timedelta(milliseconds=1)
    assert keys.find("hash") is None
    with pytest.raises(InputError, match="would have expired"):
        keys.create("late", "editor", "default", "h", "p", expires=NOON)


def test_old_scores_go_and_those_of_other_graders_and_projects_stay(database: Database) -> None:
    Projects(database).create("other")
    scores = Scores(database)
    for project in ("default", "other"):
        scores.add(project, [_record("a", "g@1"), _record("b", "g@2"), _record("c", "h@1")])
    later = NOON + timedelta(seconds=1)
    assert scores.delete("default", NOON) == 0
    assert scores.delete("default", later, "g@2") == 1
    assert scores.delete("default", later, "g") == 1
    assert [one.item for one in scores.page("default")] == ["c"]
    assert len(scores.page("other")) == 3


def test_the_use_of_a_key_is_noted_once_a_minute(database: Database) -> None:
    keys = ApiKeys(database)
    key = keys.create("CI", "admin", "*", "hash", "p").id
    seen: list[str] = []
    for seconds in (0, 59, 61):
        database.clock = lambda at=NOON + timedelta(seconds=seconds): at
        keys.touch(key)
        seen.append(keys.get(key).last_used_at)
    assert seen == ["2026-11-21T12:00:00.000Z"] * 2 + ["2026-11-21T12:01:01.000Z"]
    keys.touch("unknown")


def test_a_key_needs_a_role_and_a_project_that_are_there(database: Database) -> None:
    keys = ApiKeys(database)
    with pytest.raises(InputError, match="is not a role"):
        keys.create("x", "root", "default", "hash", "p")  # pyright: ignore[reportArgumentType] - from anyone's JSON
    with pytest.raises(NotFoundError, match="no project 'nope'"):
        keys.create("x", "viewer", "nope", "hash", "p")
    for use in (keys.revoke, keys.get):
        with pytest.raises(NotFoundError, match="no API key 'nope'"):
            use("nope")
    assert list(keys.page()) == []
    keys.create("a", "viewer", "default", "hash", "p")
    with pytest.raises(StoreError, match="refused"):
        keys.create("b", "admin", "default", "hash", "p")
    assert [key.name for key in keys.page()] == ["a"]


def test_a_reply_is_kept_for_a_day(database: Database) -> None:
    replies = Replies(database)
    assert replies.get("default", "k") is None
    assert replies.put("default", "k", "digest", 201, b'{"\x00\xff"}')
    assert replies.get("default", "k") == ("digest", 201, b'{"\x00\xff"}')
    assert replies.get("other", "k") is None
    assert not replies.put("default", "k", "digest", 201, b"second")
    assert replies.get("default", "k") == ("digest", 201, b'{"\x00\xff"}'), "the first one stays"
    with pytest.raises(InputError, match="most is 255"):
        replies.put("default", "k" * 256, "digest", 201, b"")
    database.clock = lambda: NOON + timedelta(hours=24)
    assert replies.get("default", "k") is None
    assert replies.put("default", "k", "digest-2", 200, "text")
    assert replies.get("default", "k") == ("digest-2", 200, b"text")
    assert database.rows("SELECT count(*) FROM reply") == [(1,)]
