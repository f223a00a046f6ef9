"""Stored graders: versions that never change, locks, and what a deletion leaves."""

from __future__ import annotations

import math
import os
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import ConflictError, InputError, LockedError, NotFoundError
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json
from assay.store import (
    Catalog,
    Database,
    Datasets,
    GraderRecord,
    Jobs,
    Projects,
    ScoreRecord,
    Scores,
)
from assay.store.pages import Stretch, parts
from tests.each import each
from tests.store.noon import NOON
from tests.wrong_input import nested


def _create(
    catalog: Catalog, key: str = "exact", digest: str = "d1", name: str = ""
) -> GraderRecord:
    definition: dict[str, Json] = {"source": f"# {digest}"}
    return catalog.create(
        "default", key, kind="function", definition=definition, digest=digest, name=name
    )


def _change(catalog: Catalog, digest: str, expected: int | None = None) -> GraderRecord:
    definition: dict[str, Json] = {"source": f"# {digest}"}
    return catalog.add_version(
        "default", "exact", kind="function", definition=definition, digest=digest, expected=expected
    )


def test_a_grader_comes_back_as_it_was(catalog: Catalog, database: Database) -> None:
    database.clock = lambda: NOON.replace(microsecond=123_456)
    definition: dict[str, Json] = {
        "source": "größer\0 als \ud800",
        "range": [0, 1.5, None, True],
        "many": [{"n": [n]} for n in range(5_000)],
    }
    made = catalog.create(
        "default",
        "exact.match_2-b",
        kind="function",
        definition=definition,
        digest="d" * 64,
        name="Näher",
        description="What it is for",
        feedback_key="exact",
        note="first",
        by="someone",
    )
    assert made == catalog.get("default", "exact.match_2-b")
    assert str(made) == "exact.match_2-b@1: function"
    assert made.to_dict() == {
        "project": "default",
        "key": "exact.match_2-b",
        "name": "Näher",
        "description": "What it is for",
        "feedback_key": "exact",
        "locked": False,
        "created_at": "2026-11-21T12:00:00.123Z",
        "updated_at": "2026-11-21T12:00:00.123Z",
        "latest": {
            "project": "default",
            "key": "exact.match_2-b",
            "number": 1,
            "kind": "function",
            "definition": definition,
            "digest": "d" * 64,
            "note": "first",
            "created_at": "2026-11-21T12:00:00.123Z",
            "created_by": "someone",
        },
    }


def test_a_change_is_the_next_version_and_the_old_ones_stay(catalog: Catalog) -> None:
    _create(catalog)
    assert _change(catalog, "d1").latest.number == 1  # the same content is no change
    catalog.set_locked("default", "exact", True)
    assert _change(catalog, "d1").latest.number == 1  # nothing changes: nothing is refused
    catalog.set_locked("default", "exact", False)
    assert _change(catalog, "d2", expected=1).latest.number == 2
    with pytest.raises(ConflictError, match="'exact' is at version 2, not 1"):
        _change(catalog, "d3", expected=1)
    assert _change(catalog, "d1").latest.number == 3  # back to the first: a step of its own
    assert catalog.version("default", "exact").digest == "d1"
    assert catalog.version("default", "exact", 2).definition == {"source": "# d2"}
    assert [v.number for v in catalog.versions("default", "exact")] == [3, 2, 1]


def test_a_locked_grader_stays_as_it_is(catalog: Catalog) -> None:
    changes = (
        lambda: _change(catalog, "d2"),
        lambda: catalog.describe("default", "exact", name="other"),
        lambda: catalog.delete("default", "exact"),
        lambda: catalog.delete("default", "exact", force=True),
    )
    for change in changes:
        _create(catalog)
        before = catalog.set_locked("default", "exact", True)
        assert str(before) == f"exact@{before.latest.number}: function, locked"
        with pytest.raises(LockedError, match=r"'exact' is locked.*unlock it first"):
            change()
        assert catalog.get("default", "exact") == before
        assert not catalog.set_locked("default", "exact", False).locked
        change()
        with suppress(NotFoundError):  # where that was the change
            catalog.delete("default", "exact")


def test_what_is_said_of_a_grader_may_change(catalog: Catalog) -> None:
    _create(catalog)
    catalog.describe("default", "exact", name="New", description="Words")
    described = catalog.describe("default", "exact", feedback_key="metric")
    assert (described.name, described.description, described.feedback_key) == (
        "New", "Words", "metric",
    )  # fmt: skip
    assert catalog.describe("default", "exact", name="", description="").name == "exact"
    assert catalog.get("default", "exact").latest.number == 1


def test_a_number_names_one_version_for_ever(catalog: Catalog, database: Database) -> None:
    """A grader made anew under an old key must not pass for the one that gave the old scores."""
    _create(catalog)
    with pytest.raises(ConflictError, match=r"already a grader 'exact' in the project 'default'"):
        _create(catalog, digest="d2")
    _change(catalog, "d2")
    Projects(database).create("other")
    catalog.create("other", "exact", kind="x", definition={}, digest="of another project")
    graded = Graded(id="i1", status="scored", score=1.0, grader="exact@1")
    Scores(database).add("default", [ScoreRecord(item="i1", graded=graded)])
    catalog.delete("default", "exact")
    assert [s.graded.grader for s in Scores(database).page("default", "exact")] == ["exact@1"]
    assert catalog.get("other", "exact").latest.digest == "of another project"
    for use in (catalog.get, catalog.delete):
        with pytest.raises(NotFoundError, match="there is no grader 'exact'"):
            use("default", "exact")
    assert catalog.version("default", "exact", 2).digest == "d2"
    assert _create(catalog, digest="new").latest.number == 3
    assert catalog.version("default", "exact", 1).digest == "d1"
    assert [v.number for v in catalog.versions("default", "exact")] == [3]
    assert [g.latest.number for g in catalog.page("default")] == [3]


def test_a_grader_in_a_job_that_has_not_ended_is_deleted_by_force_only(
    catalog: Catalog, database: Database
) -> None:
    _create(catalog)
    Datasets(database).create("default", "rows", "", [{"answer": "a"}])
    job = Jobs(database).create("default", grader="exact", dataset="rows").id
    with pytest.raises(ConflictError, match=r"used by a job that has not ended.*by force"):
        catalog.delete("default", "exact")
    catalog.delete("default", "exact", force=True)
    ended = Jobs(database).get(job)
    assert (ended.status, ended.message) == ("cancelled", "its grader was deleted")
    assert catalog.version("default", "exact", ended.version).digest == "d1"


def test_graders_are_listed_by_key_a_page_at_a_time(catalog: Catalog) -> None:
    keys = ["a", "a-b", "a.b", "a0", "a_b", "aa", "b"]  # in the order of their bytes
    for key in reversed(keys):
        _create(catalog, key)
    pages = parts(lambda wanted: catalog.page("default", wanted), 2)
    assert [grader.key for page in pages for grader in page] == keys


_SEARCHES: list[tuple[str, list[str]]] = [
    ("EXACT", ["exact"]),
    ("größe", ["size"]),
    ("GRÖSSE", ["size"]),
    ("grÖße", ["size"]),
    ("%", ["size"]),
    ("100%", ["size"]),
    ("_", []),
    ("!", []),
    ("\0\ud800", []),
    ("' OR 1=1 --", []),
    ("", ["exact", "size"]),
]


def test_a_search_finds_what_is_there_whatever_its_case_or_its_kind(catalog: Catalog) -> None:
    _create(catalog, "exact")
    _create(catalog, "size", name="Größe 100%")
    for query, expected in _SEARCHES:
        assert [grader.key for grader in catalog.page("default", query=query)] == expected
    catalog.create("default", "b", kind="custom", definition={}, digest="")
    assert [grader.key for grader in catalog.page("default", kind="custom")] == ["b"]
    assert list(catalog.page("default", kind="nothing' --")) == []


@each(
    "key",
    ["", "A", "a b", "-a", ".", "a/b", "../x", "*", "a@1", "ä", "a" * 65, "a\n", "a\0", "\ud800"],
)
def test_a_key_is_plain_whatever_it_names(any_database: Database, key: str) -> None:
    for use in (
        lambda: _create(Catalog(any_database), key),
        lambda: Datasets(any_database).create("default", key, "", [{"answer": "a"}]),
        lambda: Projects(any_database).ensure(key),
    ):
        with pytest.raises(InputError, match=r"cannot be a key.*a-z, 0-9"):
            use()


@each(
    "given, complaint",
    [
        ({"definition": {"weight": math.nan}}, "definition of grader 'exact' is not JSON"),
        ({"definition": {"weight": [math.inf]}}, "definition of grader 'exact' is not JSON"),
        ({"definition": {"set": {1}}}, "definition of grader 'exact' is not JSON"),
        ({"definition": {"source": "x" * (1 << 20)}}, "definition of grader 'exact' has .* bytes"),
        ({"definition": {"a": nested(150)}}, "nested deeper than 100 levels"),
        ({"name": "x" * 201}, "characters; the most is 200"),
        ({"description": "x" * 10_001}, "characters; the most is 10000"),
        ({"note": "x" * 10_001}, "characters; the most is 10000"),
        ({"by": "x" * 201}, "characters; the most is 200"),
        *(({"kind": kind}, "cannot be a kind") for kind in ("", "Function", "a b", "1a")),
    ],
)
def test_what_is_no_grader_is_refused(
    any_database: Database, given: dict[str, Any], complaint: str
) -> None:
    catalog = Catalog(any_database)
    right: dict[str, Any] = {"kind": "x", "definition": {}, "digest": "d"}
    with pytest.raises(InputError, match=complaint):
        catalog.create("default", "exact", **{**right, **given})
    with pytest.raises(NotFoundError, match="there is none yet"):
        catalog.get("default", "exact")


def test_what_is_not_there_names_the_nearest(catalog: Catalog) -> None:
    _create(catalog)
    for use in (
        lambda: catalog.get("default", "exakt"),
        lambda: catalog.version("default", "exakt", 1),
        lambda: catalog.versions("default", "exakt"),
        lambda: catalog.describe("default", "exakt", name="n"),
        lambda: catalog.set_locked("default", "exakt", True),
        lambda: catalog.delete("default", "exakt"),
    ):
        with pytest.raises(NotFoundError, match="did you mean 'exact'"):
            use()
    for number in (0, 2, 2**63 - 1):
        with pytest.raises(NotFoundError, match=r"no version \d+ \(its newest is 1"):
            catalog.version("default", "exact", number)
    for limit in (0, -1, 1001, True):
        with pytest.raises(InputError, match="1 to 1000 entries"):
            catalog.page("default", Stretch(limit))
    for number in (-1, 2**63):  # which no column holds
        with pytest.raises(InputError, match="'version' cannot be"):
            catalog.version("default", "exact", number)


@each("project", ["nope", "Default", "\ud800", ""])
def test_an_unknown_project_is_never_an_empty_one(catalog: Catalog, project: str) -> None:
    for use in (
        lambda: catalog.page(project),
        lambda: catalog.get(project, "exact"),
        lambda: catalog.create(project, "exact", kind="x", definition={}, digest="d"),
    ):
        with pytest.raises(NotFoundError, match="there is no project"):
            use()


def test_any_definition_and_any_text_comes_back(catalog: Catalog) -> None:
    text = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=50)
    json = st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
        max_leaves=12,
    )  # fmt: skip

    @given(definition=st.dictionaries(st.text(), json, max_size=4), note=text, name=text)
    def check(definition: dict[str, Json], note: str, name: str) -> None:
        key = f"g{os.urandom(8).hex()}"
        made = catalog.create(
            "default", key, kind="x", definition=definition, digest="d", note=note, name=name
        )
        assert (made.latest.definition, made.latest.note) == (definition, note)
        assert made.name == (name or key)
        pages = parts(lambda wanted: catalog.page("default", wanted, query=made.name[:200]), 200)
        assert key in [grader.key for page in pages for grader in page]

    check()
