"""Task folders of others that are hostile: what `assay import harbor` refuses, and how it is told.

That honest ones become cases in their images is asked in `tests/eval/test_images.py`.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from assay.errors import InputError
from assay.interop.harbor import write_harbor_case
from tests.command_line import assay
from tests.written_files import write_files

_HARBOR = {
    "task.toml": '[environment]\ndocker_image = "localhost/small:1"\n',
    "instruction.md": "Do it.\n",
    "environment/Dockerfile": "FROM localhost/small:1\nWORKDIR /app\n",
    "tests/test.sh": "echo 1 > /logs/verifier/reward.txt\n",
    "solution/solve.sh": "true\n",
}
_BENCH = {
    "task.yaml": "instruction: Do it.\n",
    "Dockerfile": "FROM localhost/small:1\nWORKDIR /app\n",
    "run-tests.sh": "pytest\n",
    "solution.sh": "true\n",
    "tests/test_it.py": "def test_it():\n    pass\n",
}
_NO_ENGINE = {"ASSAY_CONTAINERS": "/nowhere/podman"}


@pytest.mark.parametrize(
    ("files", "name"),
    [
        *(
            (_HARBOR, name)
            for name in (*_HARBOR, "environment", "tests", "solution", "tests/inner")
        ),
        *((_BENCH, name) for name in (*_BENCH, "tests", "docker-compose.yaml")),
    ],
)
def test_no_link_of_a_task_brings_a_file_of_the_host_into_its_case(
    files: dict[str, str], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither as a file, nor as a directory above it, nor deeper in a directory that is copied."""
    monkeypatch.setenv("ASSAY_CONTAINERS", "/nowhere/podman")
    secrets = write_files(tmp_path / "home", {**files, "SECRET": "SECRET"})
    task = write_files(tmp_path / "tasks/task", files)
    write_harbor_case(str(task), str(tmp_path / "sound"))
    place = task / name
    if place.exists():
        place.rename(tmp_path / "aside")
    place.symlink_to(secrets / name if (secrets / name).exists() else secrets)
    with pytest.raises(InputError) as refused:
        write_harbor_case(str(task), str(tmp_path / "cases/task"))
    assert str(refused.value).startswith(f"{place} is a link"), refused.value
    assert not [*(tmp_path / "cases").glob("*")], "nothing is left behind"


def test_a_link_to_a_file_of_the_host_is_told_of_a_set(tmp_path: Path) -> None:
    tasks = tmp_path / "tasks"
    for name in ("prompt", "sound"):
        write_files(tasks / name, _HARBOR)
    (tasks / "prompt/instruction.md").unlink()
    (tasks / "prompt/instruction.md").symlink_to("/etc/passwd")
    (tasks / "elsewhere").symlink_to(write_files(tmp_path / "private", _HARBOR))
    done = assay("import", "harbor", "tasks", "--out", "cases", cwd=tmp_path)
    said = " ".join(done.stdout.split())
    assert (done.returncode, "tasks: 1 case in cases" in said) == (1, True), said
    assert "Not imported: 2 of 3 tasks tasks/elsewhere: it is a link" in said
    assert "tasks/prompt/instruction.md is a link, and no link of a task is followed" in said
    assert [path.name for path in (tmp_path / "cases").iterdir()] == ["sound"]


@pytest.mark.parametrize("name", ["instruction.md", "tests/pipe", "solution/solve.sh", "task.toml"])
def test_a_pipe_in_a_task_is_named_and_not_waited_for(name: str, tmp_path: Path) -> None:
    task = write_files(tmp_path / "task", _HARBOR)
    (task / name).unlink(missing_ok=True)
    os.mkfifo(task / name)
    with pytest.raises(InputError, match=f"{name} is neither a file nor a directory"):
        write_harbor_case(str(task), str(tmp_path / "case"))


def test_what_may_be_executed_still_may_in_the_case(tmp_path: Path) -> None:
    task = write_files(tmp_path / "task", {**_HARBOR, "tests/tool": ""})
    (task / "tests/tool").chmod(0o700)
    write_harbor_case(str(task), str(tmp_path / "case"))
    modes = {
        path.name: path.stat().st_mode & 0o100 for path in (tmp_path / "case/hidden").iterdir()
    }
    assert modes == {"tool": 0o100, "test.sh": 0}


_IMAGE = 'environment.docker_image = "localhost/small:1"'
_WRONG = {
    "agent.timeout_sec = inf": "agent.timeout_sec: a finite number",
    "verifier.timeout_sec = nan": "verifier.timeout_sec: a finite",
    "agent.timeout_sec = -1": "agent.timeout_sec: a finite number",
    "agent.timeout_sec = true": "agent.timeout_sec: a finite number",
    "agent.timeout_sec = '9'": "agent.timeout_sec: a finite number",
    "agent = 'me'": "agent: a table is required, not 'me'",
    "environment.docker_image = ['a']": "environment.docker_image: a text is required, not ['a']",
    "environment.allow_internet = 'no'": (
        "environment.allow_internet: true or false is required, not 'no'"
    ),
    "environment.docker_image = '--privileged'": "would not load: container.image: ",
}


def test_a_task_whose_case_would_not_load_is_not_imported(tmp_path: Path) -> None:
    for number, text in enumerate(_WRONG):
        task = write_files(tmp_path / f"tasks/odd-{number}", _HARBOR)
        image = f"\n{_IMAGE}" if "environment" not in text else ""
        (task / "task.toml").write_text(text + image)
    task = write_files(tmp_path / "tasks/odd-place", _HARBOR)
    (task / "environment/Dockerfile").write_text("FROM a\nWORKDIR /../../etc\n")
    write_files(tmp_path / "tasks/sound", _HARBOR)
    done = assay("import", "harbor", "tasks", "--out", "cases", cwd=tmp_path, env=_NO_ENGINE)
    told = " ".join(done.stdout.split())
    assert (done.returncode, "tasks: 1 case in cases" in told) == (1, True), told
    assert f"Not imported: {1 + len(_WRONG)} of {2 + len(_WRONG)} tasks" in told
    whose = told.split("tasks/odd-")[1:]
    assert len(whose) >= 1 + len(_WRONG)
    for number, said in enumerate(_WRONG.values()):
        assert any(one.startswith(str(number)) and said in one for one in whose), said
    assert any(one.startswith("place") and "container.workdir: " in one for one in whose)
    assert [path.name for path in (tmp_path / "cases").iterdir()] == ["sound"]


def test_an_instruction_that_is_no_text_is_refused(tmp_path: Path) -> None:
    for instruction in ("[a]", "5"):
        text = f"instruction: {instruction}\n"
        task = write_files(tmp_path / "task", {**_BENCH, "task.yaml": text})
        with pytest.raises(InputError, match=r"task.yaml: instruction: a text is required"):
            write_harbor_case(str(task), str(tmp_path / "case"))
