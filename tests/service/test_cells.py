"""Operations on cells: opened, decided about, graded again, promoted; long ones in parts."""

from __future__ import annotations

import shutil
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from assay.conversation.turns import AssistantTurn, Turn
from assay.errors import ConflictError, InputError, NotFoundError
from assay.eval.journals import journal_of, label_of
from assay.gateway.journal import Answered, AskedEvent, Begun, append, encoded
from assay.registry.policy import ForbiddenError
from assay.reports.cell_records import CellView
from assay.reports.figures import TIMES
from assay.scoring.json_safe import Json
from assay.service import cells, runs
from assay.service.cells import key_of
from assay.service.local import ask, do, local_desk
from assay.service.operation import Desk, Identity
from assay.store.database import Database
from assay.store.records import CellKey, CellRecord, RunRecord
from assay.store.runs import Store
from assay.testing import FakeJudge
from assay.types.run import Run
from assay.types.trace import AgentStep, ToolCall, ToolResult, ToolStep, Trace, Usage
from tests.command_line import assay
from tests.full_case import HOSTILE, PROMPT, run_repair
from tests.written_files import write_rows

FIX: CellKey = ("kit", "replay", "fix", 1)
CHEAT: CellKey = ("kit", "replay", "cheat", 1)
C: CellKey = ("c", "", "", 1)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of six cells: two pass, two pass and are flagged, two fail."""
    with FakeJudge() as fake:
        return run_repair(tmp_path_factory.mktemp("cells"), model=fake.model)


@pytest.fixture
def desk(ran: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Desk]:
    """A desk at a copy of it."""
    shutil.copytree(ran, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    with Database.open(str(tmp_path / ".assay")) as database:
        yield local_desk(database, "default")


def view(desk: Desk, cell: CellKey) -> CellView:
    return do(cells.open_cell, desk, "kit", cell)


def test_a_cell_is_opened_with_all_that_is_known_of_it(desk: Desk) -> None:
    found = view(desk, FIX)
    assert (found.state, found.reward, found.prompt.text) == ("pass", 1.0, PROMPT)
    assert found.sentence.startswith(
        f"1.00 = 0.33{TIMES}1.00 tidy + 0.67{TIMES}1.00 clear; gate solved passed"
    )
    solved, tidy, clear = found.scores
    assert (solved.name, solved.kind, solved.gate, solved.state) == (
        "solved",
        "command",
        True,
        "pass",
    )
    facts = {fact.label: fact.text for fact in solved.facts}
    assert facts["stdout"].text.startswith("x = 2  # done <img")
    assert facts["exit code"].text == "0"
    assert [(one.what, one.state) for one in tidy.findings] == [("pattern x = 2", "pass")]
    assert [(one.verdict, one.state) for one in clear.findings] == [("MET", "pass")] * 2
    assert [child.name for child in clear.children] == ["short", "polite"]
    assert (found.cost_usd, found.tokens) == (0.012, 2_500)
    assert (found.steps, found.has_files, found.flags) == (11, True, ())
    assert [(one.place.trial, one.place.model) for one in found.siblings][:2] == [
        (1, "cheat"),
        (2, "cheat"),
    ]
    assert HOSTILE in found.answer.text
    assert found.markdown.startswith("```text\n✓ kit · replay · fix · trial 1\n")
    assert f"assay report {found.run} --case kit --harness replay" in found.commands[0].command
    for operation in (cells.open_cell, cells.list_steps, cells.list_changed_files):
        with pytest.raises(NotFoundError, match="has no cell"):
            operation.function(desk, "kit", ("kit", "replay", "other", 1))


def test_what_is_worth_a_look_is_walked_in_order(desk: Desk) -> None:
    found, seen = view(desk, CHEAT), list[tuple[str, int]]()
    assert (found.number, found.of, found.before) == (1, 4, None)
    (sign,) = found.signs  # each has a place and a reason
    assert (sign.file, sign.line, sign.code) == ("kit.py", 2, "def __eq__(self, other):")
    assert (found.may_be_decided, view(desk, FIX).may_be_decided) == (True, False)
    while found.after is not None:
        place = found.after
        seen.append((place.model, place.trial))
        found = view(desk, ("kit", "replay", place.model, place.trial))
    assert seen == [("cheat", 2), ("lazy", 1), ("lazy", 2)]
    assert (found.number, found.of) == (4, 4)
    assert found.before is not None
    assert (found.before.model, found.before.trial) == ("lazy", 1)


def test_steps_have_kinds_times_tokens_and_parents_and_files_their_diffs(desk: Desk) -> None:
    part = do(cells.list_steps, desk, "kit", FIX)
    assert [(one.kind, one.label.partition("<")[0]) for one in part.steps] == [
        ("told", "told by the system"),
        ("thought", "thought"),
        ("said", "said"),
        ("call", "called read"),
        ("result", "got"),
        ("call", "called edit"),
        ("result", "failed with"),
        ("subagent", "sent finder"),
        ("call", "called grep"),
        ("result", "got"),
        ("said", "answered"),
    ][: len(part.steps)]
    thought = part.steps[1]
    assert (thought.at, thought.seconds, thought.tokens, thought.cost_usd) == (0.0, 2.0, 940, 0.004)
    assert [one.index for one in part.steps if one.parent == 7] == [8, 9]
    assert [one.index for one in part.steps if one.is_error] == [6]
    outline = do(cells.outline_steps, desk, "kit", FIX).steps
    assert [one.label for one in outline] == [one.label for one in part.steps]
    some = do(cells.list_steps, desk, "kit", FIX, start=4, limit=2)
    assert ([one.index for one in some.steps], some.total) == ([4, 5], len(outline))
    assert do(cells.search_steps, desk, "kit", FIX, words="NO SUCH").places == (6,)
    files = do(cells.list_changed_files, desk, "kit", FIX).files
    assert [(one.path, one.how) for one in files] == [
        ("kit.py", "changed"), ("notes <b>.txt", "added"), ("old.py", "deleted"),
    ]  # fmt: skip
    assert "+x = 2" in files[0].diff


def test_what_an_agent_does_is_told_before_its_cell_has_a_result(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:  # where nothing is under way no results are read
        patch.delattr(Store, "finished")
        assert do(cells.list_cells_under_way, desk, "kit").cells == ()
    place: CellKey = ("kit", "model", "new", 1)
    (run,) = do(runs.list_runs, desk).items
    journal = Path(journal_of(Store(desk.database).home, run.id, place))
    journal.parent.mkdir(parents=True)
    at = "2026-11-23T00:00:00+00:00"
    append(journal, encoded(Begun(of=label_of(place), at=at)))
    told = Turn.of("user", "Mend it.")
    append(journal, encoded(AskedEvent(number=1, at=at, line=0, kept=0, turns=(told,))))
    (working,) = do(cells.list_cells_under_way, desk, "kit").cells
    assert (key_of(working.place), working.began) == (place, at)
    said = Turn.of("assistant", f"I look. {HOSTILE}")
    append(journal, encoded(Answered(number=1, at=at, reply=AssistantTurn(turn=said))))
    outline = do(cells.outline_steps, desk, "kit", place)
    assert outline.under_way
    assert [one.kind for one in outline.steps] == ["told", "said"]
    part = do(cells.list_steps, desk, "kit", place)
    assert ("I look." in part.steps[-1].text.text, part.total) == (True, 2)
    with pytest.raises(NotFoundError, match="has no cell"):  # it has no verdict
        do(cells.open_cell, desk, "kit", place)
    # One that was left behind by a cell that has its result, or whose name is cut, tells nothing.
    append(Path(journal_of(Store(desk.database).home, run.id, FIX)), b'{"entry": {"beg')
    append(Path(f"{journal}.jsonl"), encoded(Begun(of=label_of(FIX), at=at)))
    assert do(cells.list_cells_under_way, desk, "kit").cells == (working,)
    assert not do(cells.outline_steps, desk, "kit", FIX).under_way


def test_a_decision_is_about_the_result_as_it_was_seen(desk: Desk) -> None:
    found = view(desk, CHEAT)
    with pytest.raises(ConflictError, match="graded again meanwhile"):
        do(cells.decide_cell, desk, "kit", CHEAT, ruling="ok", seen="0" * 32)
    with pytest.raises(ConflictError, match="neither flagged nor held"):
        do(cells.decide_cell, desk, "kit", FIX, ruling="ok", seen=view(desk, FIX).seen)
    made = do(cells.decide_cell, desk, "kit", CHEAT, ruling="zero", note="liar", seen=found.seen)
    after = view(desk, CHEAT)
    assert after.decision == made
    assert (after.state, after.reward, after.seen) == ("fail", 0.0, found.seen)
    assert (made.ruling, made.note, made.by) == ("zero", "liar", desk.who.name)
    (line,) = desk.database.rows("SELECT operation, what FROM change ORDER BY seq DESC LIMIT 1")
    assert line[0] == "decide_cell"
    assert "liar" not in str(line[1]), "the log has no content"


async def test_one_cell_is_graded_again_with_the_graders_of_now(desk: Desk) -> None:
    case = Path("evals/kit/case.yaml")
    text = case.read_text("utf-8")
    case.write_text(text[: text.index("  - type: llm_judge")].replace('x = 2"]', 'y = 3"]'))
    state = await ask(cells.regrade_run, desk, "kit", FIX)
    assert (state.status, state.total, state.done) == ("finished", 1, 1), state.message
    found = view(desk, FIX)
    assert (found.state, found.reward) == ("fail", 0.0)
    assert [one.state for one in found.history] == ["fail", "pass"]
    assert len(view(desk, (*FIX[:3], 2)).history) == 1
    shutil.rmtree("evals")
    state = await ask(cells.regrade_run, desk, "kit", FIX)
    assert state.status == "failed"
    assert "evals" in state.message
    with pytest.raises(NotFoundError):
        await ask(cells.regrade_run, desk, "kit", ("nothing", "", "", 1))


def test_a_promoted_cell_is_a_recording_and_only_admins_of_all_write_it(desk: Desk) -> None:
    made = do(cells.promote_cell, desk, "kit", FIX, name="good")
    assert (made.files, made.deleted) == (2, 1)
    assert made.play == "assay run evals/kit --harness replay --model good"
    assert Path(made.directory, "files", "kit.py").read_text("utf-8").startswith("x = 2")
    with pytest.raises(InputError, match="already a recording"):
        do(cells.promote_cell, desk, "kit", FIX, name="good")
    other = replace(desk, who=Identity("1", "ada", "admin", "default"))
    with pytest.raises(ForbiddenError):
        do(cells.promote_cell, other, "kit", FIX, name="worse")


def test_texts_that_are_long_are_folded_and_can_be_had_whole(tmp_path: Path) -> None:
    answer, log = "a" * 1_000_000 + "END", "\n".join(f"line {n}" for n in range(5_000))
    node: dict[str, Json] = {"name": "t", "value": 0.5, "metadata": {"stdout": log}}
    with _stored(tmp_path, Trace(content=answer), subscores=(node,)) as desk:
        found = do(cells.open_cell, desk, "r", C)
        assert (len(found.answer.text), found.answer.more) == (2_000, 998_003)
        whole = do(cells.show_text, desk, "r", C, ref=found.answer.ref)
        assert whole.text == answer
        (fact,) = found.scores[0].facts
        assert fact.text.is_end
        assert fact.text.text.endswith("line 4999")
        assert do(cells.show_text, desk, "r", C, ref=fact.text.ref).text == log
        for ref in ("step/0", "fact/9/0", "fact/0/9", "fact/x/y", "../../etc/passwd", "prompt/1"):
            with pytest.raises(NotFoundError):
                do(cells.show_text, desk, "r", C, ref=ref)


def test_what_acts_without_being_seen_is_written_out(tmp_path: Path) -> None:
    hidden = "safe \u202edrawer\u2069 \x1b[31mred\x1b[0m"
    with _stored(tmp_path, Trace(content=hidden), flags=(hidden,)) as desk:
        found = do(cells.open_cell, desk, "r", C)
        for text in (found.answer.text, found.flags[0]):
            assert "\\u202e" in text
            assert "\x1b" not in text


def test_a_trajectory_of_thousands_of_steps_is_told_in_parts(tmp_path: Path) -> None:
    trace = Trace(content="done")
    for number in range(2_000):
        call = ToolCall(name="bash", arguments={"command": "ls -la"}, id=str(number))
        usage = Usage(prompt_tokens=100, completion_tokens=20, cost_usd=0.001)
        trace.record(AgentStep(reasoning="I look. " * 30, tool_calls=(call,), usage=usage))
        trace.record(ToolStep(call=call, result=ToolResult(content="file\n" * 50)))
    with _stored(tmp_path, trace) as desk:
        found = do(cells.open_cell, desk, "r", C)
        outline = do(cells.outline_steps, desk, "r", C)
        part = do(cells.list_steps, desk, "r", C, start=5_900, limit=200)
    assert found.steps == len(outline.steps) == part.total == 6_000
    assert len(part.steps) == 100


def test_a_damaged_detail_is_said_and_the_rest_is_shown(tmp_path: Path) -> None:
    with _stored(tmp_path, {"trace": "junk"}) as desk:
        found = do(cells.open_cell, desk, "r", C)
        assert (found.state, found.steps) == ("fail", 0)
        assert "only the result itself could be read" in found.notes[0]
        assert do(cells.outline_steps, desk, "r", C).steps == ()


def test_a_row_shows_how_its_answer_differs_from_what_was_expected(tmp_path: Path) -> None:
    rows = [{"id": "a", "question": "6 * 7?", "answer": "It is 17.", "expected": "It is 42."}]
    write_rows(tmp_path / "rows.jsonl", rows)
    (tmp_path / "graders.yaml").write_text("- {type: exact_match}\n", "utf-8")
    assay("grade", "rows.jsonl", "graders.yaml", cwd=tmp_path)
    with Database.open(str(tmp_path / ".assay")) as database:
        desk = local_desk(database, "default")
        (row,) = do(runs.list_cells, desk, "latest")
        found = do(cells.open_cell, desk, "latest", ("a", row.harness, "", 1))
    assert found.difference[1:] == ("-It is 42.", "+It is 17.")
    assert found.expected.text == "It is 42."
    assert found.scores[0].state == "fail"


@contextmanager
def _stored(home: Path, kept: Trace | dict[str, Json], **of_cell: Any) -> Generator[Desk]:
    """A desk at a store with one cell."""
    given: dict[str, Any] = {"status": "graded", "reward": 0.5, "passed": False, **of_cell}
    detail = Run(prompt="Do.", trace=kept).to_dict() if isinstance(kept, Trace) else kept
    with Database.open(str(home / ".assay")) as database:
        store = Store(database)
        store.create_run(RunRecord(id="r", created_at="2026-11-23T00:00:00+00:00", planned=1))
        store.add_cell(CellRecord(run_id="r", case="c", **given), detail)
        yield local_desk(database, "default")
