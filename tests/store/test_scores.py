"""Scores: appended, bounded, and as they were given; projects, keys and replies beside them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from math import inf, nan
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import ConflictError, InputError, NotFoundError, StoreError
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json
from assay.store import ApiKeys, Database, Projects, Replies, ScoreRecord, Scores
from assay.store.pages import Stretch, every
from tests.postgres import KINDS, new_location

_NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.fixture(params=KINDS)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    with Database.open(new_location(request, request.param, tmp_path)) as opened:
        opened.clock = lambda: _NOON
        yield opened


@pytest.fixture
def scores(database: Database) -> Scores:
    return Scores(database)


def _record(item: str, grader: str = "g@1", score: float = 1.0) -> ScoreRecord:
    graded = Graded(id=item, status="scored", score=score, grader=grader)
    return ScoreRecord(item=item, source="user", graded=graded)


def _only(scores: Scores, graded: Graded) -> Graded:
    scores.add("default", [ScoreRecord(item=graded.id, graded=graded)])
    (kept,) = scores.page("default")
    return kept.graded


_OUTCOMES = [
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


@pytest.mark.parametrize("graded", _OUTCOMES, ids=range(len(_OUTCOMES)))
def test_an_outcome_comes_back_as_it_was(scores: Scores, graded: Graded) -> None:
    assert _only(scores, graded) == graded


def test_a_record_says_where_a_score_is_from(scores: Scores) -> None:
    scores.add("default", [_record("i")])
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


def test_scores_are_read_a_page_at_a_time(scores: Scores) -> None:
    assert scores.add("default", [_record(str(n)) for n in range(5)]) == 5
    first = scores.page("default", wanted=Stretch(3))
    assert [record.item for record in first] == ["0", "1", "2"]
    rest = scores.page("default", wanted=Stretch(after=first.next))
    assert ([record.item for record in rest], rest.next) == (["3", "4"], None)


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
    kept = _only(scores, graded)
    assert (len(kept.reason), kept.reason[-1], len(kept.flags)) == (4096, "…", 64)
    assert kept.details["score"] == 1
    assert 50_000 < len(str(kept.details["output"])) < 300_000


def _endless() -> dict[str, Json]:
    endless: dict[str, Json] = {}
    endless["self"] = [endless, endless]
    return endless


def _deep() -> dict[str, Json]:
    deep: dict[str, Json] = {}
    for _ in range(500):
        deep = {"in": deep}
    return deep


@pytest.mark.parametrize(
    "details",
    [_endless(), _deep(), {"nan": nan}, {"set": {1}}],
    ids=["endless", "deep", "nan", "set"],
)
def test_evidence_that_is_no_json_is_described(scores: Scores, details: dict[str, Json]) -> None:
    kept = _only(scores, Graded(id="i", status="scored", score=1.0, details=details))
    assert list(kept.details) == list(details)
    assert kept.to_dict()


def test_an_item_has_a_short_id(scores: Scores) -> None:
    with pytest.raises(InputError, match="'item' has 513 characters; the most is 512"):
        scores.add("default", [_record("fine"), _record("x" * 513)])
    assert list(scores.page("default")) == []


def test_scores_of_an_unknown_project_are_refused(scores: Scores) -> None:
    with pytest.raises(NotFoundError, match="no project 'nope'"):
        scores.add("nope", [_record("i")])
    with pytest.raises(NotFoundError, match="no project 'nope'"):
        scores.page("nope")


_BY_HAND = (
    "INSERT INTO score (project, item, source, grader_key, digest, evidence, created_at, status, "
    "score) VALUES ('default', 'i', 'user', 'g', '', '{}', '', ?, ?)"
)


@pytest.mark.parametrize(
    ("status", "score"),
    [("scored", inf), ("scored", -inf), ("scored", nan), ("scored", None), ("error", 0.0)],
)
def test_a_number_that_is_no_score_is_refused_even_by_hand(
    scores: Scores, database: Database, status: str, score: float | None
) -> None:
    with pytest.raises(StoreError, match="refused what was to be stored"), database.writing():
        database.change(_BY_HAND, status, score)
    assert list(scores.page("default")) == []


def test_a_score_cannot_be_rewritten_even_by_hand(scores: Scores, database: Database) -> None:
    scores.add("default", [_record("i", score=0.5)])
    with pytest.raises(StoreError, match="never overwritten"), database.writing():
        database.change("UPDATE score SET score = 1")
    assert [record.graded.score for record in scores.page("default")] == [0.5]


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


def test_a_project_named_default_is_always_there(database: Database) -> None:
    (project,) = Projects(database).all()
    assert (project.key, project.name) == ("default", "Default")
    assert datetime.fromisoformat(project.created_at).tzinfo


def test_projects_are_made_once(database: Database) -> None:
    projects = Projects(database)
    made = projects.create("team-a", "Team Ä")
    assert projects.get("team-a") == made
    assert projects.ensure("team-a") == made
    assert projects.ensure("new").name == "new"
    with pytest.raises(ConflictError, match="already a project 'team-a'"):
        projects.create("team-a")
    assert [project.key for project in projects.all()] == ["default", "new", "team-a"]


@pytest.mark.parametrize("key", ["", "Team", "a b", "*", "\udcff"])
def test_a_projects_key_is_plain(database: Database, key: str) -> None:
    with pytest.raises(InputError, match="cannot be a key"):
        Projects(database).ensure(key)
    with pytest.raises(NotFoundError):
        Projects(database).get(key)


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
    database.clock = lambda: _NOON + timedelta(days=1)
    assert keys.revoke(made.id) == revoked


def test_a_key_is_found_until_it_expires(database: Database) -> None:
    keys = ApiKeys(database)
    made = keys.create(
        "CI", "editor", "default", "hash", "p", expires=_NOON + timedelta(milliseconds=1)
    )
    assert made.expires_at == "2026-11-21T12:00:00.001Z"
    assert keys.find("hash") == made == keys.page().items[0]
    database.clock = lambda: _NOON + timedelta(milliseconds=1)
    assert keys.find("hash") is None
    with pytest.raises(InputError, match="would have expired"):
        keys.create("late", "editor", "default", "h", "p", expires=_NOON)


def test_old_scores_go_and_those_of_jobs_other_graders_and_projects_stay(
    database: Database,
) -> None:
    Projects(database).create("other")
    scores = Scores(database)
    for project in ("default", "other"):
        scores.add(project, [_record("a", "g@1"), _record("b", "g@2"), _record("c", "h@1")])
    later = _NOON + timedelta(seconds=1)
    assert scores.older("default", _NOON) == scores.delete("default", _NOON) == 0
    assert scores.older("default", later, "g@2") == scores.delete("default", later, "g@2") == 1
    assert scores.delete("default", later, "g") == 1
    assert [one.item for one in scores.page("default")] == ["c"]
    assert len(scores.page("other")) == 3


def test_keys_are_listed_newest_first(database: Database) -> None:
    keys = ApiKeys(database)
    made = [keys.create(name, "viewer", "*", f"hash-{name}", "p").id for name in "abc"]
    keys.revoke(made[1])
    assert [key.id for key in keys.page()] == made[::-1]


def test_the_use_of_a_key_is_noted_once_a_minute(database: Database) -> None:
    keys = ApiKeys(database)
    key = keys.create("CI", "admin", "*", "hash", "p").id
    seen: list[str] = []
    for seconds in (0, 59, 61):
        database.clock = lambda at=_NOON + timedelta(seconds=seconds): at
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


def test_a_key_is_stored_once(database: Database) -> None:
    keys = ApiKeys(database)
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
    database.clock = lambda: _NOON + timedelta(hours=24)
    assert replies.get("default", "k") is None
    assert replies.put("default", "k", "digest-2", 200, "text")
    assert replies.get("default", "k") == ("digest-2", 200, b"text")
    assert database.rows("SELECT count(*) FROM reply") == [(1,)]


def test_the_first_reply_to_a_request_is_the_one_that_stays(database: Database) -> None:
    replies = Replies(database)
    replies.put("default", "k", "digest", 201, b"first")
    assert not replies.put("default", "k", "digest", 201, b"second")
    assert replies.get("default", "k") == ("digest", 201, b"first")
    with pytest.raises(InputError, match="most is 255"):
        replies.put("default", "k" * 256, "digest", 201, b"")
