"""SWE-bench's rows, and the cases that are written from them.

The row is that of examples/swebench. Its source is made from the recorded repair by taking the
patch back, so nothing is fetched.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assay.cli.imports import import_swebench
from assay.documents import DocumentError
from assay.errors import InputError, SourceError
from assay.interop.swebench import pick_instance, read_instance, read_instances
from assay.interop.swebench_case import apply_patch, write_case
from assay.scoring.json_safe import Json
from assay.tasks.blocks import EnvironmentSpec
from assay.tasks.case import Case, load_case
from assay.tasks.origin import Source
from assay.types.codec import ShapeError
from tests.command_line import assay
from tests.each import each
from tests.written_files import committed

EXAMPLES = Path(__file__).parents[2] / "examples" / "swebench"
ROW = EXAMPLES / "row.json"
CASE = EXAMPLES / "xmltodict-name-injection"


def row(**changes: Json) -> dict[str, Json]:
    whole = cast("dict[str, Json]", json.loads(ROW.read_text("utf-8")))
    return {name: item for name, item in {**whole, **changes}.items() if item != "left out"}


def take_back(patch: str, tree: Path) -> None:
    argv = ["git", "apply", "-R", "--whitespace=nowarn", "-"]
    subprocess.run(argv, cwd=tree, input=patch.encode(), check=True)


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """What the row's patches were made for."""
    tree = tmp_path / "base"
    (tree / "tests").mkdir(parents=True)
    for file, kept in (
        ("xmltodict.py", "recordings/reference/files/xmltodict.py"),
        ("tests/test_dicttoxml.py", "hidden/tests/test_dicttoxml.py"),
    ):
        (tree / file).write_bytes((CASE / kept).read_bytes())
    (tree / "tests" / "__init__.py").touch()
    whole = row()
    take_back(f"{whole['test_patch']}", tree)
    take_back(f"{whole['patch']}", tree)
    return tree


def convert(into: Path, source: Source | None, **changes: Json) -> tuple[str, ...]:
    instance = read_instance(row(**changes))
    cache = str(into.parent / "cache")
    return write_case(instance, str(into), source=source, cache_dir=cache).notes


# Rows.


def test_row_is_read() -> None:
    instance = read_instance(row())
    assert instance.instance_id == "martinblech__xmltodict-name-injection"
    assert instance.url == "https://github.com/martinblech/xmltodict"
    assert len(instance.fail_to_pass) == 3
    assert len(instance.pass_to_pass) == 27
    assert instance.problem_statement.startswith("XML injection")
    assert instance.version == "0.14"


IDS = ["t.py::test_a", "t.py::test_b"]


@each(
    "lists",
    [
        {"FAIL_TO_PASS": IDS, "PASS_TO_PASS": []},
        {"FAIL_TO_PASS": json.dumps(IDS), "PASS_TO_PASS": "[]"},
        {"FAIL_TO_PASS": str(IDS), "PASS_TO_PASS": "left out"},
        {"FAIL_TO_PASS": "left out", "PASS_TO_PASS": "left out", "fail_to_pass": IDS},
        {"FAIL_TO_PASS": IDS, "PASS_TO_PASS": None},
    ],
)
def test_lists_are_read_however_they_are_written(lists: dict[str, Json]) -> None:
    instance = read_instance(row(**lists))
    assert (instance.fail_to_pass, instance.pass_to_pass) == (tuple(IDS), ())


def test_fields_of_relatives_are_passed_over() -> None:
    more = row(version=2.0, hints_text=None, created_at=1700000000, test_cmds=["pytest"])
    instance = read_instance({**more, "install_config": {"python": "3.9"}, "difficulty": "<1 h"})
    assert (instance.version, instance.hints_text) == ("2.0", "")


@each(
    ("changes", "field", "message"),
    [
        ({"instance_id": "../x"}, "instance_id", "is not a name"),
        ({"repo": "https://github.com/a/b"}, "repo", "is not owner/name"),
        ({"repo": "-a/b"}, "repo", "is not owner/name"),
        ({"base_commit": "main"}, "base_commit", "is not a commit id"),
        ({"base_commit": 12345678}, "base_commit", "expected text"),
        ({"patch": "left out", "pach": "x"}, "patch", "'patch' is required"),
        ({"patch": "no diff"}, "patch", "is not a unified diff"),
        ({"test_patch": ""}, "test_patch", "is empty"),
        ({"FAIL_TO_PASS": "left out"}, "FAIL_TO_PASS", "is required"),
        ({"FAIL_TO_PASS": []}, "FAIL_TO_PASS", "no test shows the bug"),
        ({"FAIL_TO_PASS": "a::b"}, "FAIL_TO_PASS", "is not a list"),
        ({"PASS_TO_PASS": [1]}, "PASS_TO_PASS", "1 is not a test id"),
        ({"version": ["1"]}, "version", "expected text"),
    ],
)
def test_problem_of_a_row_names_its_field(
    changes: dict[str, Json], field: str, message: str
) -> None:
    with pytest.raises(ShapeError) as caught:
        read_instance(row(**changes))
    problems = caught.value.problems
    assert [p.field for p in problems] == [field]
    assert message in problems[0].message


@given(
    st.dictionaries(
        st.sampled_from([*row(), "fail_to_pass"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
            lambda inner: st.lists(inner, max_size=3),
            max_leaves=4,
        ),
    )
)
def test_row_of_anything_is_read_or_refused(changes: dict[str, object]) -> None:
    try:
        instance = read_instance({**row(), **cast("Mapping[str, Json]", changes)})
    except ShapeError:
        return
    assert instance.fail_to_pass
    assert "/" not in instance.instance_id


@pytest.mark.parametrize("form", ["one", "list", "lines"])
def test_row_is_picked_from_a_file(tmp_path: Path, form: str) -> None:
    # Separators that are no line feeds occur in issues and must not end a line.
    rows = [row(), row(instance_id="other__one-1", problem_statement="a\u2028b\x85c")]
    file = tmp_path / "rows.json"
    texts = {
        "one": json.dumps(rows[1], indent=1),
        "list": json.dumps(rows),
        "lines": "\n".join(json.dumps(r, ensure_ascii=False) for r in rows) + "\n\n",
    }
    file.write_text(texts[form], encoding="utf-8", newline="")
    found = read_instances(str(file))
    picked = pick_instance(found, "other__one-1", file=str(file))
    assert picked.problem_statement == "a\u2028b\x85c"
    if form == "one":
        assert pick_instance(found, None, file=str(file)) == picked
        return
    with pytest.raises(InputError, match="has 2 rows"):
        pick_instance(found, None, file=str(file))
    with pytest.raises(InputError, match="did you mean 'other__one-1'"):
        pick_instance(found, "other__one-2", file=str(file))


@each(
    ("content", "message"),
    [
        (b'{"a": 1}\n{"a":\n', ":2: this is not JSON"),
        (b"[1]", "a row is a mapping"),
        (b"\xff", "not UTF-8"),
        (b"[" * 100_000, "this is not JSON"),
        (b"[]", "has 0 rows"),
        (None, "cannot be read"),
    ],
)
def test_file_that_holds_something_else_is_refused(
    tmp_path: Path, content: bytes | None, message: str
) -> None:
    file = tmp_path / ("rows.jsonl" if content is not None else "none.json")
    file.write_bytes(content) if content is not None else None
    with pytest.raises(InputError) as caught:
        pick_instance(read_instances(str(file)), None, file=str(file))
    assert message in str(caught.value)


def test_every_problem_of_a_row_is_told_with_its_file(tmp_path: Path) -> None:
    """It said that 'repo' is required, and that what is valid is the one name that was there."""
    file = tmp_path / "rows.jsonl"
    file.write_text('{"instance_id": "x", "pach": ""}\n')
    with pytest.raises(InputError) as caught:
        pick_instance(read_instances(str(file)), None, file=str(file))
    said = str(caught.value)
    assert said.startswith(f"{file}: the row of instance 'x': repo: 'repo' is required; ")
    assert "patch: 'patch' is required; " in said
    assert "(did you mean 'pach'?)" in said
    assert "FAIL_TO_PASS: 'FAIL_TO_PASS' is required" in said
    assert "valid:" not in said


# Cases.


def test_case_is_written_from_a_directory_and_said(
    tmp_path: Path, base: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert import_swebench(str(ROW), source="base") == 0
    out, directory = capsys.readouterr().out, "evals/martinblech__xmltodict-name-injection"
    assert f"{directory}/hidden/tests/test_dicttoxml.py\n" in out
    assert out.endswith(f"\nTry:  assay run {directory}\n")
    into = tmp_path / directory
    case = load_case(directory)
    assert case.id == "martinblech__xmltodict-name-injection"
    assert case.task.prompt == read_instance(row()).problem_statement
    assert case.source_path == str(base)
    assert case.matrix.models == ("reference", "noop")
    options = case.graders[0].options
    assert options["fail_to_pass"] == list(read_instance(row()).fail_to_pass)
    assert options["pass_to_pass"] == list(read_instance(row()).pass_to_pass)
    hidden = str(into / "hidden/tests/test_dicttoxml.py")
    assert options["inject"] == [{"src": hidden, "dest": "tests/test_dicttoxml.py"}]
    for file in ("hidden/tests/test_dicttoxml.py", "recordings/reference/files/xmltodict.py"):
        assert (into / file).read_bytes() == (CASE / file).read_bytes()
    assert "angle" not in (base / "xmltodict.py").read_text("utf-8"), "the source was changed"


def test_case_from_a_clone_needs_neither_the_clone_nor_the_remote(
    tmp_path: Path, base: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commit, into, file = committed(base), tmp_path / "bug", tmp_path / "row.json"
    (base / "xmltodict.py").write_text("later work\n", encoding="utf-8")
    file.write_text(json.dumps(row(base_commit=commit)), "utf-8")
    assert import_swebench(str(file), into=str(into), source=str(base)) == 0
    shutil.rmtree(base)
    case = load_case(str(into))
    assert case.source_path == str(into / "source")
    text = (into / "source/xmltodict.py").read_text("utf-8")
    assert "angle" not in text
    assert text != "later work\n"
    assert not (into / "source/.git").exists()
    assert (into / "recordings/reference/files/xmltodict.py").is_file()
    assert commit in (into / "case.yaml").read_text("utf-8")
    out = capsys.readouterr().out  # every file of a source was listed
    assert f"  {into}/source/ (3 files)\n" in out
    assert "source/xmltodict.py" not in out


def test_of_a_set_every_row_is_imported_that_can_be(tmp_path: Path, base: Path) -> None:
    clones = tmp_path / "clones"
    clones.mkdir()
    base.rename(clones / "xmltodict")
    lines = [
        json.dumps(row()),
        json.dumps(row(instance_id="second")),
        '{"instance_id": "torn", ',
        json.dumps(row(instance_id="third", patch="left out")),
        json.dumps(row()),
        json.dumps(row(instance_id="other", repo="a/b")),
        json.dumps(row(instance_id="fifth", patch=f"{row()['patch']}".replace("xml", "XML"))),
    ]
    rows = tmp_path / "rows.jsonl"
    rows.write_text("\n".join(lines))
    words = ("import", "swebench", "rows.jsonl", "--source", "clones/{name}")
    done = assay(*words, cwd=tmp_path)
    said = " ".join(done.stdout.split())
    assert (done.returncode, "rows.jsonl: 2 cases in evals" in said) == (1, True), said
    assert "Not imported: 5 of 7 tasks" in said
    for part in (
        "rows.jsonl:3: this is not JSON",
        "rows.jsonl:4: the row of instance 'third': patch: 'patch' is required",
        "name-injection' is already that of rows.jsonl:1",
        "rows.jsonl:6: there is no directory 'clones/b'",
        "rows.jsonl:7: patch of fifth cannot be applied",
    ):
        assert part in said
    assert sorted(p.name for p in (tmp_path / "evals").iterdir()) == [
        "martinblech__xmltodict-name-injection",
        "second",
    ]
    assert load_case(str(tmp_path / "evals/second")).id == "second"

    lines[1] = json.dumps(row(instance_id="second", problem_statement="Otherwise."))
    rows.write_text("\n".join(lines[:2]))
    (tmp_path / "evals/.assay-import-left/whole").mkdir(parents=True)  # of one that was killed
    again = assay(*words, cwd=tmp_path)
    said = " ".join(again.stdout.split())
    assert (again.returncode, "1 case in evals, 1 of them there already" in said) == (1, True)
    assert "rows.jsonl:2: evals/second is there, and not made of this (remove it" in said
    shutil.rmtree(tmp_path / "evals/second")
    assert assay(*words, cwd=tmp_path).returncode == 0
    assert len(list((tmp_path / "evals").iterdir())) == 2, "what was left is removed"


NEW = "diff --git a/{0} b/{0}\nnew file mode {1}\n--- /dev/null\n+++ b/{0}\n@@ -0,0 +1 @@\n+{2}\n"
CHANGED = "--- a/{0}\n+++ b/{0}\n@@ -1 +1 @@\n-{1}\n+{2}\n"


def environment_of(into: Path, changed: str, test: str, **changes: Json) -> EnvironmentSpec:
    """That of the case of a project of one file, which is repaired."""
    file = into.parent / "base" / changed
    file.parent.mkdir(parents=True)
    file.write_text("x = 1\n")
    convert(
        into,
        Source(path=str(into.parent / "base")),
        patch=CHANGED.format(changed, "x = 1", "x = 2"),
        test_patch=NEW.format(test, "100644", "def test_x(): pass"),
        FAIL_TO_PASS=[f"{test}::test_x"],
        PASS_TO_PASS=[],
        **changes,
    )
    environment = load_case(str(into)).environment
    assert environment is not None
    return environment


def test_a_project_in_src_that_nothing_put_on_the_path_got_everybody_0(tmp_path: Path) -> None:
    environment = environment_of(tmp_path / "bug", "src/sums/__init__.py", "test_sums.py")
    assert environment.env == {"PYTHONPATH": "/workspace/src"}


def test_pytests_own_repository_was_judged_by_another_pytest(tmp_path: Path) -> None:
    """By the index's, in which the bug is mended: doing nothing got 1, or the reference 0."""
    file = "src/_pytest/__init__.py"
    environment = environment_of(tmp_path / "bug", file, "testing/test_x.py", version="9.2")
    assert environment.install == "editable"
    assert "pytest" not in environment.requirements
    assert environment.env == {"SETUPTOOLS_SCM_PRETEND_VERSION": "9.2"}


def test_without_a_source_the_case_says_what_is_missing_and_does_not_load(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    into = tmp_path / "bug"
    assert import_swebench(str(ROW), into=str(into)) == 1
    said = capsys.readouterr().err
    assert "note: the hidden files are not there yet" in said
    assert "import again with the source of martinblech/xmltodict" in " ".join(said.split())
    assert (into / "hidden/test.patch").read_text("utf-8") == row()["test_patch"]
    assert "NOT THERE YET" in (into / "case.yaml").read_text("utf-8")
    with pytest.raises(DocumentError, match=r"hidden/tests/test_dicttoxml\.py' does not exist"):
        load_case(str(into))


def test_what_cannot_be_imported_writes_nothing(tmp_path: Path, base: Path) -> None:
    into = tmp_path / "bug"
    for options, message in (
        ({"source": "nowhere"}, "there is no directory 'nowhere'"),
        ({"sha256": "0" * 64}, "is of a source distribution"),
        ({"instance_id": "nobody__no-1"}, "has no instance"),
    ):
        with pytest.raises(InputError, match=message):
            import_swebench(str(ROW), into=str(into), **options)
        assert not into.exists()
    (base / "xmltodict.py").write_text("something else\n", encoding="utf-8")
    with pytest.raises(InputError, match="patch of martinblech__xmltodict-name-injection cannot"):
        convert(into, Source(path=str(base)))
    assert not into.exists()
    assert sorted(p.name for p in tmp_path.iterdir() if p.name.startswith(".")) == []
    into.mkdir()
    (into / "mine.txt").touch()
    with pytest.raises(InputError, match="already there"):
        convert(into, Source(path=str(base)))
    assert [p.name for p in into.iterdir()] == ["mine.txt"]


def loaded(into: Path) -> Case:
    """A case that was written without a source, with an empty file for what it hides."""
    (into / "hidden/tests").mkdir()
    (into / "hidden/tests/test_dicttoxml.py").touch()
    return load_case(str(into))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    statement=st.text(min_size=1, max_size=80).filter(lambda text: text.strip()),
    commit=st.sampled_from(["12345678", "12e45678", "0123456789"]),
)
def test_any_statement_and_a_commit_that_looks_like_a_number_survive_yaml(
    tmp_path: Path, statement: str, commit: str
) -> None:
    into = tmp_path / "bug"
    shutil.rmtree(into, ignore_errors=True)
    convert(into, None, problem_statement=statement, base_commit=commit)
    lines = statement.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    tidy = "\n".join(line.rstrip() for line in lines).strip("\n")
    case = loaded(into)
    assert case.task.prompt == f"{tidy}\n"
    assert case.source is not None
    assert case.source.commit == commit


# Patches.


def tree_of(tmp_path: Path) -> Path:
    tree = tmp_path / "tree"
    (tree / "src").mkdir(parents=True)
    (tree / "src" / "a.py").write_text("one\ntwo\n", encoding="utf-8")
    (tree / "b.py").write_text("b\n", encoding="utf-8")
    return tree


@pytest.mark.parametrize(
    "patch",
    [
        NEW.format("../outside", "100644", "x"),
        NEW.format("src/../../outside", "100644", "x"),
        NEW.format("/etc/outside", "100644", "x"),
        NEW.format(".git/hooks/post-checkout", "100755", "x"),
        NEW.format("link", "120000", "/etc/passwd"),
        NEW.format("src/link", "0120000", "../../outside"),
        NEW.format("link", "120000", ".") + NEW.format("link/../../outside", "100644", "x"),
        NEW.format("out/x", "100644", "x"),
        CHANGED.format("b.py", "wrong", "x"),
        CHANGED.format("none.py", "b", "x"),
        "diff --git a/b.py b/b.py\nnonsense\n",
    ],
)
def test_hostile_or_foreign_patch_is_refused(tmp_path: Path, patch: str) -> None:
    tree = tree_of(tmp_path)
    away = tmp_path / "away"
    away.mkdir()
    (tree / "out").symlink_to(away)
    with pytest.raises(InputError, match="the patch"):
        apply_patch(patch, str(tree), what="the patch")
    assert not list(tmp_path.glob("outside"))
    assert list(away.iterdir()) == []


def test_patch_adds_changes_renames_and_deletes(tmp_path: Path) -> None:
    tree = tree_of(tmp_path)
    patch = (
        "diff --git a/src/a.py b/src/c.py\nsimilarity index 100%\n"
        "rename from src/a.py\nrename to src/c.py\n"
        + NEW.format("bin/run", "100755", "echo")
        + "diff --git a/b.py b/b.py\ndeleted file mode 100644\n--- a/b.py\n+++ /dev/null\n"
        "@@ -1 +0,0 @@\n-b"
    )
    change = apply_patch(patch, str(tree), what="the patch")
    assert change.written == ("bin/run", "src/c.py")
    assert change.deleted == ("b.py", "src/a.py")
    assert (tree / "bin/run").stat().st_mode & 0o100


def test_patch_is_applied_inside_of_somebody_s_repository_by_git(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    tree, patch = tree_of(tmp_path), CHANGED.format("b.py", "b", "new")
    assert apply_patch(patch, str(tree), what="the patch").written == ("b.py",)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SourceError, match="git is not installed"):
        apply_patch(patch, str(tree), what="the patch")


# The command.
