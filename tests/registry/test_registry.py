"""The registry: what is stored was validated, versions never change, a lock holds."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

import pytest

from assay.errors import ConflictError, InputError, LockedError, NotFoundError
from assay.registry import Definition, ValidationFailedError
from assay.registry.imports import write_folder
from assay.registry.policy import Permissions
from assay.store.catalog import Catalog
from assay.store.database import Database
from assay.types.submission import Submission
from tests.grader_definitions import StoredGraders, definition

EXACT = definition("declared", graders=({"type": "exact_match"},))
SUMS = definition(
    "declared",
    graders=({"type": "exact_match"}, {"type": "contains", "substring": "4", "weight": 3.0}),
    threshold=0.75,
)
JUDGE = definition("binary_judge", criteria="helps", judge_model="m")
ITEMS = [
    ("right", Submission(answer="4", expected="4")),
    ("near", Submission(answer="It is 4.", expected="4")),
    ("wrong", Submission(answer="5", expected="4")),
    ("lacking", Submission(answer="4")),
]


async def test_a_grader_is_stored_and_an_update_is_a_new_version(registry: StoredGraders) -> None:
    record = await registry.create("exact", EXACT, description="equal", note="first")
    first = record.latest
    assert (record.name, record.feedback_key, record.description) == ("exact", "exact", "equal")
    assert (first.number, first.kind, first.note, first.created_by) == (
        1, "declared", "first", "ann",
    )  # fmt: skip
    assert (first.definition, first.digest) == (EXACT.to_dict(), EXACT.digest())
    assert registry.get("exact") == record
    second = await registry.update("exact", SUMS, note="sums", expected=1)
    assert [version.number for version in registry.versions("exact")] == [2, 1]
    assert (registry.version("exact", 1), registry.version("exact")) == (first, second.latest)
    kinds = await registry.update("exact", JUDGE)
    assert (kinds.latest.number, kinds.latest.kind) == (3, "binary_judge")
    again = await registry.update("exact", EXACT)
    assert (again.latest.number, again.latest.digest) == (4, first.digest)
    with pytest.raises(InputError, match=r"unknown kind 'fuction' \(did you mean 'function'"):
        registry.page(kind="fuction")  # and no empty list


async def test_the_same_definition_makes_no_version_even_under_other_code(
    registry: StoredGraders, monkeypatch: pytest.MonkeyPatch
) -> None:
    await registry.create("exact", EXACT)

    def other_digest(self: Definition) -> str:
        return f"{len(self.specs)} graders of another assay"

    monkeypatch.setattr(Definition, "digest", other_digest)
    assert (await registry.update("exact", EXACT)).latest.number == 1
    (done,) = await registry.import_files(registry.files())
    assert (done.change, done.record.latest.number) == ("unchanged", 1)
    registry.lock("exact")  # which does not hinder an import
    done, new = await registry.import_files({"exact.yaml": _TOTALS, "new.yaml": _CUSTOM})
    assert (done.change, new.change) == ("unchanged", "created")
    assert (await registry.update("exact", EXACT)).latest.number == 1


async def test_a_diff_shows_definitions_and_sources(
    registry: StoredGraders, database: Database
) -> None:
    await registry.create("exact", EXACT)
    await registry.update("exact", SUMS)
    diff = registry.diff("exact")
    assert diff == registry.diff("exact", 1, 2)
    assert "--- exact.yaml@1\n+++ exact.yaml@2\n" in diff
    assert "+      weight: 3.0\n" in diff
    assert "+  threshold: 0.75\n" in diff
    assert registry.diff("exact", 2, 2) == ""
    catalog = Catalog(database)
    for source in ("a = 1\nb = 2\n", "a = 1\nb = 3"):
        made = definition("function", source=source)
        stored: Any = {"definition": made.to_dict(), "digest": made.digest()}
        catalog.add_version("default", "exact", kind="function", **stored)
    assert registry.diff("exact") == (
        "--- exact.py@3\n+++ exact.py@4\n@@ -1,2 +1,2 @@\n a = 1\n-b = 2\n+b = 3\n"
        "\\ No newline at end of file\n"
    )
    with pytest.raises(NotFoundError, match="no version 9"):
        registry.diff("exact", 1, 9)
    old = registry.version("exact", 4)
    registry.delete("exact")
    new = (await registry.create("exact", EXACT)).latest
    assert (new.number, registry.before(new)) == (5, old)
    assert registry.before(registry.version("exact", 1)) is None
    assert registry.diff("exact").startswith("--- exact.yaml@4\n+++ exact.yaml@5\n")


async def test_items_are_graded_in_their_order_by_a_version(registry: StoredGraders) -> None:
    await registry.create("sums", EXACT)
    await registry.update("sums", SUMS)
    graded = await registry.grade("sums", ITEMS)
    assert [one.id for one in graded] == ["right", "near", "wrong", "lacking"]
    assert [one.score for one in graded] == [1.0, 0.75, 0.0, None]
    assert [one.details.get("passed") for one in graded] == [True, True, False, None]
    assert graded[3].status == "error"
    assert "needs 'expected'" in graded[3].error
    assert {(one.grader, one.digest) for one in graded} == {("sums@2", SUMS.digest())}
    graded = await registry.grade("sums", ITEMS, version=1)
    assert [one.score for one in graded] == [1.0, 0.0, 0.0, None]
    assert {(one.grader, one.digest) for one in graded} == {("sums@1", EXACT.digest())}


INTERNAL = {"url": "http://127.0.0.1:1", "allow_internal": True}


@pytest.mark.parametrize(
    ("definition", "said"),
    [
        (JUDGE, "'binary_judge' cannot ask its model"),
        (definition("prebuilt_judge", type="FAITHFULNESS", judge_model="m"), "'faithfulness' can"),
        (definition("custom"), "grades nothing itself"),
        (definition("custom", path="python:planted:Planted"), "not imported here"),
        (definition("external_endpoint", **INTERNAL), "internal addresses are not called here"),
        (
            definition("declared", graders=({"type": "external_endpoint", **INTERNAL},)),
            "internal addresses are not called here",
        ),
    ],
)
async def test_attack_what_may_not_run_here_is_stored_and_does_not_run(
    registry: StoredGraders,
    definition: Definition,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    proof = tmp_path / "imported"
    (tmp_path / "planted.py").write_text(f"open({str(proof)!r}, 'w')", "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    record = await registry.create("x", definition, samples=[ITEMS[0]])
    assert record.latest.number == 1
    report = await registry.validate(definition, samples=[ITEMS[0]])
    assert report.valid
    assert any(said in warning for warning in report.warnings)
    assert report.samples == ()
    with pytest.raises(InputError, match=said):
        await registry.grade("x", ITEMS)
    assert not proof.exists()
    assert "planted" not in sys.modules


_OWN = """
from assay.graders import Grader


class Short(Grader):
    name = "short"

    @classmethod
    def compute_score(cls, answer: str) -> float:
        return 1.0 if len(answer) < 3 else 0.0
"""


async def test_a_custom_class_runs_where_its_author_allows_it(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_graders.py").write_text(_OWN, "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    registry = StoredGraders(database, permissions=Permissions(custom_code=True))
    await registry.create("short", definition("custom", path="python:own_graders:Short"))
    graded = await registry.grade("short", ITEMS)
    assert [one.score for one in graded] == [1.0, 0.0, 1.0, 1.0]
    assert graded[0].grader == "short@1"
    assert graded[0].digest
    absent = definition("custom", path="python:own_graders:Absent")
    with pytest.raises(ValidationFailedError, match="no Grader 'Absent'"):
        await registry.create("absent", absent)
    await StoredGraders(database).create("absent", absent)
    with pytest.raises(InputError, match="no Grader 'Absent'"):
        await registry.grade("absent", ITEMS)


async def test_attack_importing_files_imports_no_class_that_they_name(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "planted_file.py").write_text("raise SystemExit('ran')", "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    registry = StoredGraders(database, permissions=Permissions(custom_code=True))
    files = {"c.yaml": "kind: custom\ndefinition: {path: 'python:planted_file:X'}\n"}
    (done,) = await registry.import_files(files)
    assert done.change == "created"
    assert "planted_file" not in sys.modules


async def test_a_grader_that_cannot_grade_a_sample_is_not_stored(registry: StoredGraders) -> None:
    with pytest.raises(ValidationFailedError) as caught:
        await registry.create("exact", EXACT, samples=[ITEMS[0], ITEMS[3][1]])
    error = caught.value
    assert "test_run: sample '2' could not be graded" in str(error)
    assert "nothing was stored" in str(error)
    assert [one.status for one in error.report.samples] == ["scored", "error"]
    assert pickle.loads(pickle.dumps(error)).report == error.report
    assert list(registry.page()) == []
    await registry.create("exact", EXACT)
    with pytest.raises(ValidationFailedError):
        await registry.update("exact", SUMS, samples=[ITEMS[3]])
    assert registry.get("exact").latest.number == 1


async def test_warnings_say_what_will_not_work(registry: StoredGraders) -> None:
    files = definition("declared", graders=({"type": "files", "patterns": ["x"]},))
    report = await registry.validate(files)
    assert report.valid
    assert report.warnings == (
        "grader 'files' needs 'workspace', which rows do not have: they cannot be graded",
    )
    trace = definition("declared", graders=({"type": "trace", "max_tool_calls": 1},))
    assert (await registry.validate(trace)).warnings == (), "a row may have one"
    signed = definition(
        "external_endpoint", url="http://a.com", secret_env="ASSAY_SECRET_X", auth="hmac"
    )
    assert (await registry.validate(signed)).warnings == ()


async def test_attack_an_answer_that_says_nothing_is_paid_by_a_template(
    registry: StoredGraders,
) -> None:
    check = {"type": "string_check", "input": "{{sample.output_text}}", "operation": "like"}
    named = definition("declared", graders=({**check, "reference": "{{item.expected}}"},))
    samples = [Submission(answer="Paris", expected="Paris")]
    (warning,) = (await registry.validate(named, samples=samples)).warnings
    assert "are paid: a list of all words gets 1, where an empty one gets 0" in warning
    exact = definition("declared", graders=({**check, "operation": "eq", "reference": "Paris"},))
    assert (await registry.validate(exact, samples=samples)).warnings == ()


_CUSTOM = "kind: custom\n"
_TOTALS = "kind: declared\ndefinition: {graders: [{type: exact_match}]}\n"


async def test_import_says_what_it_did_and_changes_nothing_where_it_may_not(
    registry: StoredGraders,
) -> None:
    await registry.create("a", EXACT)
    await registry.create("b", EXACT)
    await registry.create("c", EXACT)
    done = await registry.import_files(
        {"a.yaml": _TOTALS, "b.yaml": _CUSTOM, "c.yaml": f"name: C\n{_TOTALS}", "d.yaml": _CUSTOM}
    )
    assert [(one.record.key, one.change, one.record.latest.number) for one in done] == [
        ("a", "unchanged", 1),
        ("b", "updated", 2),
        ("c", "described", 1),
        ("d", "created", 1),
    ]
    assert registry.get("d").latest.created_by == "ann"
    with pytest.raises(ConflictError, match="different: a"):
        await registry.import_files({"a.yaml": _CUSTOM, "e.yaml": _CUSTOM}, update=False)
    done = await registry.import_files({"a.yaml": _TOTALS, "e.yaml": _CUSTOM}, update=False)
    assert [one.change for one in done] == ["unchanged", "created"]


@pytest.mark.parametrize(
    ("files", "error"),
    [
        ({"new.yaml": _CUSTOM, "locked.yaml": _CUSTOM}, LockedError),
        ({"new.yaml": _CUSTOM, "locked.yaml": f"name: x\n{_TOTALS}"}, LockedError),
        ({"new.yaml": _CUSTOM, "open.yaml": "kind: custm\n"}, InputError),
        ({"new.yaml": _CUSTOM, "z.yaml": f"name: {'x' * 300}\n{_CUSTOM}"}, InputError),
    ],
)
async def test_an_import_is_all_or_nothing(
    registry: StoredGraders, files: dict[str, str], error: type[Exception]
) -> None:
    await registry.create("locked", EXACT)
    await registry.create("open", EXACT)
    registry.lock("locked")
    with pytest.raises(error):
        await registry.import_files({"open.yaml": _CUSTOM, **files})
    assert [record.key for record in registry.page()] == ["locked", "open"]
    assert {record.latest.number for record in registry.page()} == {1}


async def test_export_of_some_graders(registry: StoredGraders, tmp_path: Path) -> None:
    await registry.create("a", EXACT)
    await registry.create("b", EXACT)
    assert [path.name for path in write_folder(registry.files(["b"]), tmp_path / "out")] == [
        "b.yaml"
    ]
    with pytest.raises(NotFoundError):
        write_folder(registry.files(["b", "c"]), tmp_path / "other")
    assert not (tmp_path / "other").exists()


_BROKEN = "async def grade(thread: StringThread) -> float:\n    return numpy.mean([1])\n"


@pytest.mark.sandbox
async def test_a_function_that_fails_a_check_is_not_stored(registry: StoredGraders) -> None:
    with pytest.raises(ValidationFailedError, match=r"line 2: .*numpy") as caught:
        await registry.create("re", definition("function", source=_BROKEN))
    assert [check.passed for check in caught.value.report.checks][-1] is False
    assert str(caught.value).count("line 2") == 1
    files = {"a.yaml": _CUSTOM, "re.yaml": "kind: function\n", "re.py": _BROKEN}
    with pytest.raises(
        ValidationFailedError, match=r"'re' .*: new/re\.py:2: name 'numpy'"
    ) as wrong:
        await registry.import_files(files, folder="new/")
    assert pickle.loads(pickle.dumps(wrong.value)).file == "new/re.py"
    assert list(registry.page()) == []
