"""The rules of what is stored, asked of the operations themselves, as servers and clients do."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from assay.errors import ConflictError, NotFoundError, StoreError
from assay.registry.policy import ForbiddenError, Permissions
from assay.scoring.json_safe import Json
from assay.service import graders, scores, site
from assay.service.local import ask
from assay.service.operation import LOCAL, Desk, Identity
from assay.service.table import OPERATIONS
from assay.store.database import Database
from tests.each import each

EXACT: dict[str, Json] = {"graders": [{"type": "exact_match"}]}
ROWS: list[dict[str, Json]] = [{"id": "a", "answer": "4", "expected": "4"}]
SECRET = Permissions(secrets={"ASSAY_SECRET_REWARDS": "rewards.example.com"})


async def _made(desk: Desk, key: str = "exact") -> None:
    await ask(graders.create_grader, desk, key, "declared", EXACT)


async def test_scores_are_recorded_unless_they_are_not_to_be_and_what_was_deleted_grades_no_more(
    desk: Desk,
) -> None:
    await _made(desk)
    await ask(graders.grade, desk, "exact", ROWS, record=False)
    assert (await ask(scores.list_scores, desk)).items == []
    await ask(graders.delete_grader, desk, "exact")
    for number in (None, 1):
        with pytest.raises(NotFoundError):
            await ask(graders.grade, desk, "exact", ROWS, number)


ADDRESS = "http://169.254.169.254/v1#m"


def _judged(name: str, value: Json) -> tuple[str, dict[str, Json], str]:
    judge: dict[str, Json] = {"type": "llm_judge", "criteria": ["c"], name: value}
    return "declared", {"graders": [judge]}, f"definition.graders[0].{name}"


SENT: dict[str, Json] = {
    "url": "https://rewards.example.com.evil.example/",
    "secret_env": "ASSAY_SECRET_REWARDS",
}
CUSTOM, INTERNAL = "--set allow_custom_code=true", "--set allow_internal_endpoints=true"
FORBIDDEN: list[tuple[str, dict[str, Json], str, str]] = [
    ("custom", {"path": "python:os:x"}, "definition.path", CUSTOM),
    ("external_endpoint", {"url": "http://10.0.0.1", "allow_internal": True},
     "definition.allow_internal", INTERNAL),
    ("external_endpoint", SENT, "definition.secret_env",
     "--set endpoint_secrets.ASSAY_SECRET_REWARDS=HOST"),
    ("external_endpoint", SENT | {"secret_env": "ASSAY_SECRET_X"}, "definition.secret_env",
     "--set endpoint_secrets.ASSAY_SECRET_X=HOST"),
    ("declared", {"graders": [{"type": "external_endpoint", **SENT}]},
     "definition.graders[0].secret_env", "--set endpoint_secrets.ASSAY_SECRET_REWARDS=HOST"),
    (*_judged("model", ADDRESS), INTERNAL),
    (*_judged("judge_model", ADDRESS), INTERNAL),
    (*_judged("models", ["m", ADDRESS]), INTERNAL),
    (*_judged("escalate", ADDRESS), INTERNAL),
]  # fmt: skip


@each("kind, definition, place, setting", FORBIDDEN)
async def test_attack_what_may_not_run_here_is_neither_stored_nor_tried(
    tmp_path: Path, kind: str, definition: dict[str, Json], place: str, setting: str
) -> None:
    with Database.open(tmp_path) as database:
        desk = Desk(database, "default", LOCAL, SECRET)
        file = json.dumps({"kind": kind, "definition": definition})
        asked: list[Callable[[], Awaitable[object]]] = [
            lambda: ask(graders.create_grader, desk, "x", kind, definition),
            lambda: ask(graders.validate_grader, desk, kind, definition),
        ]
        if "judge_model" not in place and kind != "custom":
            asked.append(lambda: ask(graders.import_graders, desk, {"x.yaml": file}))
        for one in asked:
            with pytest.raises(ForbiddenError) as caught:
                await one()
            assert caught.value.location.field == place
            assert caught.value.hint.endswith(setting)
            sent = "may not be sent to 'rewards.example.com.evil.example'" in str(caught.value)
            assert sent == ("secret" in place)
        assert (await ask(graders.list_graders, desk)).items == []
        allowed = Permissions(custom_code=True, internal=True)
        assert list(allowed.refusals(kind, definition)) == []


def test_the_table_names_every_operation_once() -> None:
    assert len({(one.method, one.path) for one in OPERATIONS}) == len(OPERATIONS) > 30
    for one in OPERATIONS:
        braces = {part[1:-1] for part in one.path.split("/") if part.startswith("{")}
        assert braces - {"project"} == {i.sent_as for i in one.places if i.place == "path"}, (
            one.name
        )
        assert one.function.__doc__, one.name
        has_body = any(i.place == "body" for i in one.places)
        assert not has_body or one.method in ("POST", "PUT", "PATCH"), one.name


async def test_what_was_changed_is_noted_by_project_in_pages(desk: Desk) -> None:
    everywhere = replace(desk, project="")
    await ask(site.create_project, everywhere, "qa")
    limited = await ask(site.limit_project, replace(desk, project="qa"), requests_per_minute=600)
    assert (limited.requests_per_minute, limited.gradings_at_once) == (600, None)
    await _made(desk)
    await ask(graders.grade, desk, "exact", ROWS)
    with pytest.raises(ConflictError):
        await ask(site.create_project, everywhere, "qa")
    first = await ask(site.list_all_changes, everywhere, limit=2)
    rest = await ask(site.list_all_changes, everywhere, limit=2, after=first.next)
    seen = [(one.operation, one.project, one.by) for one in (*first.items, *rest.items)]
    assert seen == [
        ("create_grader", "default", "local"),
        ("limit_project", "qa", "local"),
        ("create_project", "*", "local"),
    ]
    (only,) = (await ask(site.list_changes, replace(desk, project="qa"))).items
    assert only.what == {"requests_per_minute": 600, "gradings_at_once": None}
    with pytest.raises(StoreError, match="never rewritten"), desk.database.writing():
        desk.database.change("UPDATE change SET who = 'nobody'")


async def test_keys_are_managed_by_admins_of_their_project_and_limits_by_those_of_all(
    tmp_path: Path,
) -> None:
    with Database.open(tmp_path) as database:
        desk = Desk(database, "", LOCAL, Permissions())
        everywhere = await ask(site.create_key, desk, "all", "admin", "*")
        assert everywhere.token.startswith(everywhere.prefix)
        for role in ("viewer", "editor"):
            low = Desk(database, "", Identity("1", "low", role, "*"), Permissions())
            with pytest.raises(ForbiddenError):
                await ask(site.list_keys, low)
            with pytest.raises(ForbiddenError):
                await ask(site.create_key, low, "n", role, "*")
        own = Desk(database, "", Identity("1", "own", "admin", "default"), Permissions())
        with pytest.raises(ForbiddenError):
            await ask(site.create_key, own, "n", "admin", "*")
        with pytest.raises(ForbiddenError, match="all projects"):
            await ask(site.limit_project, replace(own, project="default"), requests_per_minute=9)
        with pytest.raises(NotFoundError):
            await ask(site.revoke_key, own, everywhere.id)
        assert (await ask(site.list_keys, own)).items == []


def test_the_order_of_operations_does_not_depend_on_what_was_imported_first() -> None:
    program = (
        "import assay.service.uses, assay.service.scores\n"
        "from assay.service.table import OPERATIONS\n"
        "print(*(one.path for one in OPERATIONS))"
    )
    listed = subprocess.check_output([sys.executable, "-c", program], text=True)
    assert listed.split() == [one.path for one in OPERATIONS]
