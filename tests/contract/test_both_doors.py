"""Every operation is the same through both doors: at a store of one's own, and on a server.

Each is asked of two copies of a store, in the same order; what comes of it, or how it is refused,
is the same in its values, in its types and in its words.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, cast

import pytest
from syrupy.assertion import SnapshotAssertion

from assay import Client
from assay.agents.transcripts.otlp import sent_spans
from assay.client.local import LocalBackend
from assay.client.remote import RemoteBackend
from assay.client.scope import Backend
from assay.errors import AssayError, ConflictError, InputError, LockedError, NotFoundError
from assay.scoring.json_safe import Json
from assay.scoring.records import as_json
from assay.service.local import local_desk
from assay.service.site import new_key
from assay.service.table import OPERATIONS
from assay.service.traces import new_spans, receive
from assay.store import ApiKeys, Database
from assay.store.traces import TraceLimits
from assay.testing import FakeJudge
from tests.client_modes import running
from tests.full_case import run_repair
from tests.otlp_spans import TRACE, agent_spans, otlp_request

pytestmark = pytest.mark.sandbox

Seen: TypeAlias = "dict[str, Any]"
"""The newest outcome of each operation."""
Given: TypeAlias = "Mapping[str, object] | Callable[[Seen], Mapping[str, object]]"

REFUSALS = (NotFoundError, ConflictError, LockedError, InputError)
EXACT: dict[str, Json] = {"graders": [{"type": "exact_match"}]}
WRONG: list[Mapping[str, Json]] = [{"type": "exact_match", "expected": "5"}]
NEVER: dict[str, Json] = {"graders": [*map(dict, WRONG)]}
JUDGE: dict[str, Json] = {"criteria": "good", "judge_model": "m"}
ROWS: list[dict[str, Json]] = [
    {"id": f"r{n}", "question": f"{n} + 2?", "answer": "4" if n % 3 else "5", "expected": "4"}
    for n in range(6)
]
FIX = {"run": "kit", "cell": ("kit", "replay", "fix", 1)}
CHEAT = {"run": "kit", "cell": ("kit", "replay", "cheat", 1)}
NONE = {"run": "kit", "cell": ("none", "", "", 1)}


def _of_job(seen: Seen) -> dict[str, object]:
    return {"job": seen["create_job"].id}


def _of_card(seen: Seen) -> dict[str, object]:
    return {"card": seen["list_calibrations"].items[0].id}


def _label(label: str) -> Callable[[Seen], dict[str, object]]:
    def given(seen: Seen) -> dict[str, object]:
        item = seen["next_to_label"].items[0]
        told = {"item": item.item, "place": item.place, "run": "kit", "field": "good"}
        return {**told, "label": label, "note": "it works"}

    return given


ASKED: list[tuple[str, Given]] = [
    ("show_caller", {}),
    ("list_projects", {}),
    ("create_project", {"key": "qa"}),
    ("create_project", {"key": "qa"}),
    ("show_project", {}),
    ("limit_project", {"requests_per_minute": 100_000}),
    ("create_key", {"name": "ci", "role": "viewer", "project": "default", "days": 1}),
    ("list_keys", {}),
    ("revoke_key", lambda seen: {"key": seen["create_key"].id}),
    ("revoke_key", {"key": "none"}),
    # Graders.
    ("list_kinds", {}),
    ("list_models", {}),
    ("create_grader", {"key": "exact", "kind": "declared", "definition": EXACT}),
    ("create_grader", {"key": "exact", "kind": "declared", "definition": EXACT}),
    ("create_grader", {"key": "import", "kind": "declared", "definition": EXACT}),
    ("create_grader", {"key": "p", "kind": "prebuilt_judge", "definition": {"type": "X"}}),
    (
        "create_grader",
        {"key": "x", "kind": "declared", "definition": {"graders": [{"type": "exact_mach"}]}},
    ),
    (
        "create_grader",
        {"key": "f", "kind": "function", "definition": {"source": "def nothing(): pass"}},
    ),
    ("create_grader", {"key": "e", "kind": "external_endpoint", "definition": {"url": "ftp://x"}}),
    ("create_grader", {"key": "review", "kind": "custom", "definition": {}}),
    ("create_grader", {"key": "judge", "kind": "binary_judge", "definition": JUDGE}),
    ("validate_grader", {"kind": "declared", "definition": EXACT, "samples": ROWS[:2]}),
    ("validate_grader", {"kind": "declared", "definition": {"graders": []}}),
    ("try_grader", {"kind": "declared", "definition": EXACT, "samples": ROWS, "saved": "never"}),
    ("try_grader", {"kind": "declared", "definition": EXACT, "dataset": "none", "take": 1}),
    ("preview_judge", {"definition": {"criteria": "c", "judge_model": "m"}, "samples": ROWS[:1]}),
    ("preview_judge", {"definition": {"criteria": " ", "judge_model": "m"}, "samples": []}),
    ("probe_endpoint", {"definition": {"url": "http://127.0.0.1:9/", "allow_internal": True}}),
    ("update_grader", {"grader_key": "exact", "kind": "declared", "definition": NEVER}),
    (
        "update_grader",
        {"grader_key": "exact", "kind": "declared", "definition": EXACT, "expected": 1},
    ),
    ("describe_grader", {"grader_key": "exact", "description": "better"}),
    ("show_grader", {"grader_key": "exact", "version": 1}),
    ("show_grader", {"grader_key": "exact", "version": 9}),
    ("list_graders", {"query": "exa"}),
    ("list_graders", {"after": "zzz"}),
    ("list_graders", {"project": "none"}),
    ("list_versions", {"grader_key": "exact"}),
    ("diff_versions", {"grader_key": "exact", "older": 1, "newer": 2}),
    ("diff_versions", {"grader_key": "exact", "older": 1, "newer": 5}),
    ("lock_grader", {"grader_key": "exact", "locked": True}),
    ("delete_grader", {"grader_key": "exact"}),
    ("lock_grader", {"grader_key": "exact", "locked": False}),
    ("export_graders", {"keys": "exact"}),
    ("import_graders", lambda seen: {"files": seen["export_graders"].files, "update": False}),
    ("import_graders", {"files": {"n.yaml": "kind: custom\n"}}),
    ("import_graders", {"files": {"n.yaml": "kind: custm\n"}}),
    ("import_graders", {"files": {"exact.yaml": "kind: custom\n"}, "update": False}),
    ("import_graders", {"files": {"../n.yaml": "kind: custom\n"}}),
    # Grading.
    ("grade", {"grader_key": "exact", "items": ROWS, "version": 1}),
    ("grade", {"grader_key": "exact", "items": ROWS, "record": False, "deadline": 60.0}),
    ("grade", {"grader_key": "exact", "items": [ROWS[0], ROWS[0]]}),
    ("grade", {"grader_key": "exact", "items": [{"metadata": {}}]}),
    ("grade", {"grader_key": "review", "items": ROWS}),
    ("grade", {"grader_key": "judge", "items": ROWS}),
    ("grade", {"grader_key": "none", "items": ROWS}),
    ("add_scores", {"scores": [{"grader": "review", "item": "a", "score": 0.8}]}),
    ("add_scores", {"scores": [{"grader": "exact", "item": "a", "score": 0.8}]}),
    ("add_scores", {"scores": [{"grader": "review", "item": "a", "score": 0.8, "note": 1}]}),
    ("list_scores", {"grader": "exact", "limit": 3}),
    ("show_use", {"grader_key": "exact"}),
    ("delete_scores", {"before": "2020-01-01T00:00:00Z"}),
    ("delete_scores", {"before": "soon"}),
    # Datasets and jobs.
    ("read_lines", {"lines": '{"output": "4"}\n[]\n', "mapping": {"answer": "output"}}),
    ("list_datasets", {}),
    ("show_dataset", {"key": "rows"}),
    ("list_rows", {"key": "rows", "offset": 4, "whole": True}),
    ("show_row", {"key": "rows", "number": 2}),
    ("show_row", {"key": "rows", "number": 99}),
    ("create_job", {"grader": "none", "dataset": "rows"}),
    ("create_job", {"grader": "exact", "dataset": "rows"}),
    ("show_job", _of_job),
    ("show_job", {"job": "none"}),
    ("list_jobs", {"status": "finished", "dataset": "rows"}),
    ("show_job_summary", _of_job),
    ("list_results", lambda seen: {**_of_job(seen), "order": "score", "whole": True}),
    ("show_result", lambda seen: {**_of_job(seen), "number": 1}),
    ("cancel_job", _of_job),
    ("show_dataset_use", {"key": "rows"}),
    ("delete_dataset", {"key": "rows"}),
    ("delete_job", _of_job),
    ("delete_job", _of_job),
    # Labels and calibrations.
    ("next_to_label", {"dataset": "rows", "limit": 2, "seed": 7}),
    ("next_to_label", {}),
    ("next_to_label", {"run": "kit", "field": "good", "classes": "YES,NO"}),
    ("add_label", _label("YES")),
    ("add_label", _label("PERHAPS")),
    ("list_labels", {}),
    ("list_labelled", {"field": "good"}),
    ("export_labels", {"field": "good"}),
    ("add_label", _label("")),
    ("plan_calibration", {"grader": "never", "repeats": 3}),
    ("calibrate_grader", {"grader": "never"}),
    ("calibrate_grader", {"grader": "none"}),
    ("list_calibrations", {"grader": "never"}),
    ("show_calibration", _of_card),
    ("show_calibration", {"card": "none"}),
    ("grade", {"grader_key": "never", "items": ROWS}),
    ("update_grader", {"grader_key": "never", "kind": "declared", "definition": EXACT}),
    ("show_grader", {"grader_key": "never", "version": 1}),
    ("show_grader", {"grader_key": "never"}),
    ("grade", {"grader_key": "never", "items": ROWS}),
    # Runs and cells.
    ("list_runs", {"search": "evals"}),
    ("show_run", {"run": "kit"}),
    ("show_run", {"run": "none"}),
    ("show_run_overview", {"run": "kit"}),
    ("show_run_overview", {"run": "kit", "by": "topic"}),
    ("show_run_matrix", {"run": "kit", "sort": "worst"}),
    ("list_cells", {"run": "kit", "model": "fix", "sort": "reward", "whole": True}),
    ("list_agents", {"run": "kit"}),
    ("show_scores", {"run": "kit"}),
    ("show_trainability", {"run": "kit"}),
    ("compare_runs", {"before": "kit", "before_model": "fix", "after_model": "lazy"}),
    ("compare_runs", {"before": "kit"}),
    ("show_cell", FIX),
    ("open_cell", CHEAT),
    ("open_cell", NONE),
    ("list_cells_under_way", {"run": "kit"}),
    ("outline_steps", FIX),
    ("list_steps", {**FIX, "start": 4, "limit": 2}),
    ("search_steps", {**FIX, "words": "NO SUCH"}),
    ("list_changed_files", FIX),
    ("list_pictures", FIX),
    ("show_text", {**FIX, "ref": "answer"}),
    ("show_text", {**FIX, "ref": "../../etc/passwd"}),
    ("decide_cell", lambda seen: {**CHEAT, "ruling": "zero", "seen": seen["open_cell"].seen}),
    ("decide_cell", {**CHEAT, "ruling": "ok", "seen": "0" * 32}),
    ("promote_cell", {**FIX, "name": "kept"}),
    ("promote_cell", {**FIX, "name": "kept"}),
    ("promote_cell", {**FIX, "name": "../out"}),
    ("promote_cell", {**FIX, "name": "/tmp/out"}),
    ("promote_cell", {**FIX, "name": ".hidden"}),
    ("promote_cell", {**FIX, "name": "a/../../b"}),
    ("promote_cell", {**FIX, "name": "a\u202eb"}),
    ("show_regrade", {"run": "kit"}),
    ("regrade_run", {"run": "kit", "cell": ("none", "", "", 1)}),
    # Traces.
    ("list_traces", {}),
    ("show_trace", {"trace": TRACE}),
    ("collect_traces", {"key": "sent"}),
    ("collect_traces", {"key": "sent"}),
    ("delete_trace", {"trace": TRACE}),
    ("delete_trace", {"trace": TRACE}),
    ("delete_traces", {"before": "2020-01-01T00:00:00Z"}),
    # What is deleted, and what was noted of all this.
    ("delete_grader", {"grader_key": "never", "force": True}),
    ("delete_grader", {"grader_key": "never"}),
    ("delete_dataset", {"key": "sent", "force": True}),
    ("delete_run", {"run": "latest"}),
    ("delete_run", {"run": "2026"}),
    ("delete_run", lambda seen: {"run": seen["show_run"].id}),
    ("delete_run", {"run": "none"}),
    ("list_changes", {"limit": 200}),
    ("list_all_changes", {"limit": 200}),
]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a run, a grader, a dataset with labels, and a trace."""
    root = tmp_path_factory.mktemp("made")
    with FakeJudge() as fake:
        run_repair(root, model=fake.model)
    with Client(store=str(root / ".assay")) as client:
        client.graders.create.declared(key="never", graders=WRONG)
        client.datasets.create("rows", ROWS)
        for item in client.labels.queue(dataset="rows", limit=50).items:
            answer = next(part.text for part in item.parts if part.name == "answer")
            says = "PASS" if answer == "4" else "FAIL"
            client.labels.add(item, says, dataset="rows", note="read", criterion="Is it 4?")
    with Database.open(root / ".assay") as database:
        spans, _ = new_spans(sent_spans(otlp_request(agent_spans())), TraceLimits())
        receive(local_desk(database, "default"), spans, TraceLimits())
    return root


async def test_whatever_is_asked_comes_to_the_same(
    filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    assert {name for name, _ in ASKED} == {one.name for one in OPERATIONS}
    heres = [tmp_path / name for name in ("store", "server")]
    made = new_key()
    for here in heres:
        shutil.copytree(filled, here, symlinks=True)
        with Database.open(here / ".assay") as database:
            name = local_desk(database, "default").who.name
            ApiKeys(database).create(name, "admin", "*", made.hashed, made.prefix)
    monkeypatch.chdir(heres[0])
    local = LocalBackend(str(heres[0] / ".assay"))
    with running(str(heres[1] / ".assay"), internal=True) as server:
        remote = RemoteBackend(server.url, made.token, timeout=60.0)
        here = await _everything(local)
        monkeypatch.chdir(heres[1])
        there = await _everything(remote)
        await remote.close()
    await local.close()
    both = zip(ASKED, here, there, strict=True)
    assert not [(name, one, other) for (name, _), one, other in both if one != other]
    told = [f"{name}: {_refusal(one)}" for (name, _), one in zip(ASKED, here, strict=True)]
    assert "\n".join(told) == snapshot


def _refusal(outcome: Json) -> str:
    """How something was refused; of what was done, others say what is right of it."""
    said = cast("list[Json]", outcome)
    return " | ".join(map(str, said)) if isinstance(said[0], str) else "done"


async def _everything(backend: Backend) -> list[Json]:
    seen: Seen = {}
    return [await _outcome(backend, name, given, seen) for name, given in ASKED]


async def _outcome(backend: Backend, name: str, given: Given, seen: Seen) -> Json:
    (operation,) = (one for one in OPERATIONS if one.name == name)
    arguments = dict(given(seen) if callable(given) else given)
    project = str(arguments.pop("project", "default")) if operation.in_project else ""
    try:
        found = await backend.call(operation, project, arguments)
    except AssayError as error:
        place = str(error.location) if isinstance(error, InputError) else ""
        kinds = [kind.__name__ for kind in REFUSALS if isinstance(error, kind)]
        return _plain([*kinds, error.message, error.hint, place.replace("If-Match", "")])
    seen[name] = found
    if name == "create_job":
        await backend.begin(found)
        async for _ in backend.follow(project, found.id):
            pass
    return _plain([as_json(found), _shape(found)])


def _shape(value: object) -> Json:
    """The types of records, as deep as they go: a dictionary would be equal as JSON."""
    if isinstance(value, list | tuple):
        return [_shape(item) for item in cast("Sequence[object]", value)]
    names = getattr(type(value), "__dataclass_fields__", None)
    return names and [type(value).__name__, *(_shape(getattr(value, name)) for name in names)]


_OF_ITS_OWN = (
    "token",
    "prefix",
    "seconds",
    "seconds_each",
    "milliseconds",
    "last_used_at",
    "seq",
    "address",
)
_DRAWN = re.compile(
    r"\d{4}-\d\d-\d\dT[\d:.]+(\+00:00|Z)?|\b(\d{8}-(\d{6}-)?[0-9a-f]{4,8}|[0-9a-f]{12}|[0-9a-f]{32})\b"
    r"|/\S+/evals|^local$"
)


def _plain(value: Json) -> Json:
    """Without what is another in each store: times, ids that are drawn, where it is."""
    if isinstance(value, str):
        return _DRAWN.sub("…", value)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {k: "…" if k in _OF_ITS_OWN else _plain(one) for k, one in value.items()}
    return value
