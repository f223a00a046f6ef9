"""What forms for graders are made of, and what depends on stored graders."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.errors import InputError
from assay.registry.definitions import KINDS as STORED
from assay.registry.policy import ForbiddenError, Permissions
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json
from assay.service import graders, jobs, kinds, uses
from assay.service.local import ask
from assay.service.operation import LOCAL, Desk
from assay.store.datasets import Datasets
from assay.store.scores import ScoreRecord, Scores
from tests.endpoint_servers import answering, faulty

JUDGE: dict[str, Json] = {"criteria": "It is right.", "judge_model": "local"}
EXACT: dict[str, Json] = {"graders": [{"type": "exact_match"}]}


async def test_a_form_has_the_fields_of_a_kind_with_what_each_is_by_default(desk: Desk) -> None:
    told = await ask(kinds.list_kinds, desk)
    assert {kind.name for kind in told.kinds} == set(STORED)
    forms = {kind.name: kind.form["properties"] for kind in told.kinds}
    judge = forms["binary_judge"]
    assert isinstance(judge, dict)
    assert isinstance(panel := judge["panel"], dict)
    assert isinstance(members := panel["properties"], dict)
    assert members["repeats"] == {
        "type": "integer",
        "description": "How often each is asked.",
        "default": 1,
    }
    assert judge["few_shot"]["default"] == 8  # type: ignore[index]
    declared = {kind.name: kind for kind in told.declared}
    contains = declared["contains"].form
    assert contains["required"] == ["type", "substring"]
    assert "answer" not in contains["properties"]  # type: ignore[operator]
    assert declared["score_model"].family == "openai"
    assert "workspace" in declared["command"].needs
    assert "junit_xml" in declared["tests"].form["properties"]  # type: ignore[operator]
    assert "own_files" not in declared["tests"].form["properties"]  # type: ignore[operator]


async def test_a_template_is_shown_as_the_judge_gets_it_with_each_variable(desk: Desk) -> None:
    row: dict[str, Json] = {"question": "Capital of France?", "answer": "<b>Paris</b>"}
    template = "Q {{last_user_turn_content}} A {{completion}}"
    seen = await ask(kinds.preview_judge, desk, {**JUDGE, "user_template": template}, [row])
    assert "Paris" in seen.user
    assert "It is right." in seen.user
    assert seen.system
    assert seen.mistakes == ()
    shown = {one.name: one for one in seen.variables}
    assert (shown["completion"].value, shown["completion"].fence) == ("<b>Paris</b>", "answer")
    assert (shown["completion"].used, shown["turns"].used) == (True, False)


@pytest.mark.parametrize(
    "row",
    [{"answer": None}, {"messages": []}, {"messages": [{"role": "user", "content": "hello"}]}],
)
async def test_a_sample_that_nobody_answered_is_refused_and_no_fault_of_ours(
    desk: Desk, row: dict[str, Json]
) -> None:
    with pytest.raises(InputError, match="there is no answer") as refused:
        await ask(kinds.preview_judge, desk, JUDGE, [row])
    assert refused.value.location.field == "samples[0]"


async def test_what_is_wrong_in_a_template_is_told_with_its_line(desk: Desk) -> None:
    broken = await ask(kinds.preview_judge, desk, {**JUDGE, "user_template": "a\n{{#if x}}"})
    (mistake,) = broken.mistakes
    assert (mistake.field, mistake.line, mistake.warning) == ("user_template", 2, False)
    assert mistake.message == "{{#if}} is not closed"
    assert broken.user == ""
    assert "completion" in {one.name for one in broken.variables}
    unknown = await ask(kinds.preview_judge, desk, {**JUDGE, "user_template": "\n{{complete}}"})
    assert [(one.line, one.warning) for one in unknown.mistakes] == [(2, True), (None, True)]
    assert unknown.user
    unsaid = await ask(kinds.preview_judge, desk, {"criteria": " ", "judge_model": "local"})
    assert [one.field for one in unsaid.mistakes] == ["criteria"]
    assert unsaid.user, "the rest is shown already"


async def test_an_endpoint_is_asked_what_it_is_only_where_it_may_be(desk: Desk) -> None:
    internal = Desk(desk.database, "default", LOCAL, Permissions(internal=True))
    with faulty(answering(lambda _: {"name": "rewards"})) as server:
        wanted: dict[str, Json] = {"url": server.url, "allow_internal": True}
        found = await ask(kinds.probe_endpoint, internal, wanted)
        assert (found.online, found.name) == (True, "rewards"), found.error
        asked = len(server.asked)
        with pytest.raises(ForbiddenError, match="internal"):
            await ask(kinds.probe_endpoint, desk, wanted)
        with pytest.raises(InputError):
            await ask(kinds.probe_endpoint, desk, {"url": server.url})
        assert len(server.asked) == asked, "nobody was asked"
    gone = await ask(kinds.probe_endpoint, internal, wanted)
    assert not gone.online
    assert gone.error


async def test_models_are_those_of_the_settings_and_those_in_use(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "models.yaml"
    file.write_text("endpoints: {mine: {base_url: 'http://127.0.0.1:1/v1', key_env: MY_KEY}}")
    monkeypatch.setenv("ASSAY_MODELS", str(file))
    await ask(graders.create_grader, desk, "right", "binary_judge", JUDGE)
    told = await ask(kinds.list_models, desk)
    assert [(one.name, one.source, one.ready) for one in told.models] == [
        ("mine", "settings", False),
        ("claude-haiku-4-5", "default", None),
        ("local", "used", None),
    ]


async def test_a_list_tells_what_depends_on_each_grader(desk: Desk) -> None:
    database = desk.database
    for key in ("a", "b"):
        await ask(graders.create_grader, desk, key, "declared", EXACT)
    Datasets(database).create("default", "rows", "", [{"id": "1", "answer": "4"}])
    await ask(jobs.create_job, desk, "a", "rows")
    given = [
        Graded(id="1", status="scored", score=1.0, grader="a@1"),
        Graded(id="2", status="scored", score=0.0, grader="a@1"),
        Graded(id="3", status="error", error="no reply", grader="a@1"),
    ]
    Scores(database).add("default", [ScoreRecord(item=one.id, graded=one) for one in given])

    first = await ask(graders.list_graders, desk, limit=1)
    (one,) = first.items
    assert (one.key, one.latest.number, one.latest.kind) == ("a", 1, "declared")
    assert (one.use.jobs, one.use.active_jobs, one.use.scores) == (1, 1, 3)
    assert one.use.datasets == ("rows",)
    (other,) = await ask(graders.list_graders, desk, after=first.next)
    assert (other.key, other.use.jobs, other.use.scores) == ("b", 0, 0)

    seen = await ask(uses.show_use, desk, "a")
    assert (seen.given.n, seen.given.scored, seen.given.errors) == (3, 2, 1)
    assert (seen.given.mean, sum(bar.count for bar in seen.given.bars)) == (0.5, 2)
    assert (seen.given.bars[0].count, seen.given.bars[-1].count) == (1, 1)
    assert [job.grader for job in seen.jobs] == ["a"]
    assert any("1 job that has not ended" in said for said in seen.consequences)

    await ask(graders.delete_grader, desk, "a", force=True)
    await ask(graders.create_grader, desk, "a", "declared", EXACT)
    again = await ask(uses.show_use, desk, "a")
    assert (again.use.jobs, again.use.scores, again.jobs) == (0, 0, ())
