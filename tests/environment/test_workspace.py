"""Templates whose agents work in files: graded as cases are, in a tree of what is permitted."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any, cast

import pytest

from assay.agents import ModelAgent
from assay.environment import Environment
from assay.errors import InputError, SandboxError
from assay.graders import combine
from assay.graders.command import CommandGrader
from assay.graders.tests import PytestGrader
from assay.store.restore import read_snapshot
from assay.tasks import SubmissionSpec
from assay.testing import calls
from assay.types import Run, Submission
from tests.environment.playing import playing

Steps = AsyncGenerator[Any, Any]

pytestmark = pytest.mark.sandbox

_HIDDEN = """\
import sums


def test_total():
    assert sums.total([1, 2, 3]) == 6
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    source = tmp_path / "source"
    source.mkdir()
    (source / "sums.py").write_text("def total(numbers):\n    return 0\n")
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "test_sums.py").write_text(_HIDDEN)
    return tmp_path


def writing(**files: str) -> Callable[[Run], Any]:
    async def agent(run: Run) -> None:
        assert run.workspace is not None
        for name, text in files.items():
            Path(run.workspace.path, name.replace("__", ".")).write_text(text)
        run.trace.content = "done"

    return agent


_FIXED = "def total(numbers):\n    return sum(numbers)\n"


async def test_work_in_a_workspace_is_graded_by_graders_and_by_hand(project: Path) -> None:
    env, seen = Environment("repairs"), dict[str, object]()
    repo = env.workspace(project / "source")

    @env.template(workspace=repo)
    async def fix() -> Steps:
        live = repo().path
        answer = yield "Repair sums.py."
        tests = await repo.run("python3 -m pytest -q", hidden=project / "hidden")
        seen.update(
            answer=answer,
            changes=repo().changes,
            code=repo.read("sums.py"),
            moved=repo().path != live == repo().submitted,
            passed=tests.exit_code == 0,
            nothing=[repo.read(path) for path in ("none", "../hidden/test_sums.py", "/etc/passwd")],
        )
        yield await combine(
            PytestGrader.grade(
                name="hidden", workspace=repo(), inject=[str(project / "hidden/test_sums.py")]
            ),
            CommandGrader.grade(name="there", cmd="test -s sums.py", workspace=repo()),
        )

    fixed = (await fix().run(writing(sums__py=_FIXED))).runs[0]
    assert fixed.reward == 1.0, fixed.grade
    assert seen == {
        "answer": "done",
        "changes": ("sums.py",),
        "code": _FIXED,
        "moved": True,
        "passed": True,
        "nothing": [None, None, None],
    }
    assert fixed.workspace is not None
    assert not Path(fixed.workspace.path).exists()
    assert not list(project.glob("store/*"))
    async with cast("Any", fix().work).open(home=str(project / "store")) as session:
        Path(session.workspace.path, "sums.py").write_text("kept")
        await session.grade(Submission(answer="done"))
        entries = read_snapshot(str(project / "store"), str(session.notes["snapshot"]))
    assert list(entries) == ["sums.py"]
    unfixed = (await fix().run(writing())).runs[0]
    assert unfixed.reward == 0.5
    assert (seen["changes"], seen["passed"]) == ((), False)


async def test_what_could_speak_to_the_judge_is_left_out_of_what_is_graded(project: Path) -> None:
    env, left_out = Environment("repairs"), list[str]()
    repo = env.workspace(project / "source", submission=SubmissionSpec(protect=("data.txt",)))

    @env.template(workspace=repo)
    async def fix() -> Steps:
        yield "Repair sums.py."
        left_out.extend(repo().left_out)
        ended = await repo.run("python3 -m pytest -q", hidden=project / "hidden")
        yield float(ended.exit_code == 0)

    lie = "import os\nos._exit(0)\n"
    agent = writing(conftest__py=lie, json__py=lie, _pytest__py=lie, data__txt="7")
    run = (await fix().run(agent)).runs[0]
    assert run.reward == 0.0
    assert {"conftest.py", "json.py", "data.txt"} <= set(left_out)


async def test_a_link_of_the_agents_leads_the_template_nowhere(project: Path) -> None:
    env = Environment("repairs")
    repo = env.workspace(project / "source")
    (project / "secret").write_text("secret")

    @env.template(workspace=repo)
    async def looks() -> Steps:
        yield "Go."
        yield float(repo.read("link") is None and repo.read("inside/secret") is None)

    async def agent(run: Run) -> None:
        assert run.workspace is not None
        Path(run.workspace.path, "link").symlink_to(project / "secret")
        Path(run.workspace.path, "inside").symlink_to(project)

    assert (await looks().run(agent)).reward == 1.0


async def test_a_template_sets_its_workspace_up_and_sessions_share_nothing() -> None:
    env = Environment("files")
    place = env.workspace(setup=["echo made > made.txt"])

    @env.template(workspace=place)
    async def counts(number: int) -> Steps:
        await place.run(f"echo {number} > number.txt", keep=True)
        yield "Double it."
        with pytest.raises(InputError, match="what is graded is not changed"):
            await place.run("true", keep=True)
        found = (place.read("made.txt"), place.read("number.txt"), place().changes)
        is_mine = found == ("made\n", f"{number}\n", ("double.txt",))
        yield float(is_mine and place.read("double.txt") == str(2 * number))

    async def agent(run: Run) -> None:
        assert run.workspace is not None
        number = int(Path(run.workspace.path, "number.txt").read_text())
        Path(run.workspace.path, "double.txt").write_text(str(2 * number))

    for number in (3, 5):
        job = await counts(number).run(agent, group=2)
        assert [run.reward for run in job] == [1.0, 1.0], job


async def test_a_model_works_in_it_with_its_tools(project: Path) -> None:
    env = Environment("repairs")
    repo = env.workspace(project / "source", network=True)

    @env.template(workspace=repo)
    async def fix() -> Steps:
        yield "Repair sums.py."
        yield float(repo.read("sums.py") == _FIXED)

    assert ModelAgent().for_task(fix()).network is True
    with playing(calls("write", path="sums.py", content=_FIXED), "Done.") as fake:
        job = await fix().run(ModelAgent(), model=fake.model)
    assert job.reward == 1.0, job


async def test_what_fails_is_an_error_and_never_a_zero() -> None:
    env = Environment("files")
    broken = env.workspace(setup=["exit 3"])
    other = env.workspace()

    @env.template(workspace=broken)
    async def never() -> Steps:
        yield "p"
        yield 1.0

    @env.template(workspace=other)
    async def asks_for_another() -> Steps:
        yield "p"
        yield float(broken.read("x") is None)

    @env.template(workspace=other)
    async def breaks() -> Steps:
        yield "p"
        raise SandboxError("gone")

    for template, why in (
        (never, "'exit 3' ended with 3"),
        (asks_for_another, "no session with this workspace"),
        (breaks, "gone"),
    ):
        (run,) = (await template().run(writing())).runs
        assert run.reward is None
        assert why in str(run.trace.error)


def test_what_cannot_be_declared_is_refused(tmp_path: Path) -> None:
    env = Environment("files")
    with pytest.raises(InputError, match=r"copy of .*gone, which is no directory .*__file__"):
        env.workspace(tmp_path / "gone")
    place = env.workspace()
    with pytest.raises(InputError, match="no session with this workspace is at work here"):
        place()

    async def steps() -> Steps:
        yield "p"
        yield 1.0

    with pytest.raises(InputError, match=r"not declared \(workspace=env.workspace\('project'\)\)"):
        env.template(workspace=cast("Any", "project"))(steps)
    with pytest.raises(InputError, match="a workspace and max_steps"):
        env.template(max_steps=3, workspace=place)(steps)
