"""Read a task folder of Harbor or Terminal-Bench, and write it as a case in a container image."""

from __future__ import annotations

import hashlib
import re
import shlex
import shutil
import tomllib
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import cast

from assay.errors import InputError, Location, ProvisionError, SourceError
from assay.eval.images import ContainerEngine, build_image, find_engine
from assay.interop.writing import (
    ORIGIN,
    OneOfSet,
    WrittenCase,
    files_below,
    new_directory,
    tidy,
)
from assay.registry.files import yaml_text
from assay.scoring.json_safe import Json
from assay.tasks.case_files import tree_digest

_NAME = re.compile(r"[^A-Za-z0-9._-]+")
_WORKDIR = re.compile(r"^\s*WORKDIR\s+(\S+)\s*$", re.MULTILINE | re.IGNORECASE)
_WITH = re.compile(r"(?:-w|--with)[ =]([A-Za-z0-9][\w.\[\]-]*(?:==[\w.]+)?)")
_STARTS_PYTEST = re.compile(r"\bpytest\b")
_FETCHES = re.compile(r"\b(?:apt-get|apk|curl|wget|uvx|pip install|npm install)\b")
_TESTS = "tests"
_REPORT = "assay-reward.xml"
_LAYOUT = {
    "Harbor": (
        "environment/Dockerfile; or docker_image in task.toml's [environment]",
        "tests/test.sh",
    ),
    "Terminal-Bench": ("Dockerfile", "run-tests.sh"),
}
"""Where a task folder of each form has its image and its script of tests, for people."""
_HEAD = """\
# {id}: imported from {form}'s format. Everything runs in the image, without a network; what an
# agent leaves outside of {workdir} is not graded.
"""
_REWARD = """\
ln -sfn /workspace/tests /tests; mkdir -p /logs/verifier
export TEST_DIR=/tests; /bin/bash /tests/{script}; code=$?
{reward}
case $reward in 1|1.0) what= ;; *) what="<failure message='reward $reward'/>" ;; esac
printf '<testsuite><testcase name="reward">%s</testcase></testsuite>' "$what" > {report}
"""
_REWARDS = {
    "Harbor": "reward=$(cat /logs/verifier/reward.txt)",
    "Terminal-Bench": 'test "$code" = 0 && reward=1 || reward=0',
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    """What a task folder says, in either form."""

    form: str
    name: str
    prompt: str
    agent_s: float
    tests_s: float
    network: bool
    image: str
    context: Path | None
    dockerfile: Path | None
    script: Path | None
    solution: Path | None
    notes: list[str] = field(default_factory=list[str])


def write_harbor_case(folder: str, directory: str) -> WrittenCase:
    """Write a task folder as a case: its image built where an engine is at hand, else named.

    Args:
        folder: Has a ``task.toml`` (Harbor) or a ``task.yaml`` (Terminal-Bench).
        directory: Where to; absent or empty. It appears only when it is complete.

    Raises:
        InputError: The folder is no task, or the directory is not empty.
        ProvisionError: The image cannot be built.
    """
    task = _read(Path(folder))
    with new_directory(directory) as whole:
        image, runnable, workdir = _image(task)
        hidden = _copy_tests(task, whole / "hidden")
        _write_recordings(task, whole / "recordings")
        text = _case_text(task, image=image, workdir=workdir, hidden=hidden)
        text += yaml_text({"metadata": {ORIGIN: _origin(folder)}})
        (whole / "case.yaml").write_text(text, encoding="utf-8")
        files = tuple(files_below(whole))
    return WrittenCase(directory=directory, files=files, runnable=runnable, notes=tuple(task.notes))


def tasks_below(folder: str) -> list[OneOfSet] | None:
    """The tasks of a folder of task folders, by name; None if it is itself a task."""
    place = Path(folder)
    if _is_task(place):
        return None
    try:
        found = sorted(one for one in place.iterdir() if one.is_dir() and _is_task(one))
    except OSError as error:
        raise InputError(f"{folder} cannot be read: {error.strerror}") from error
    return [_one_of_set(one) for one in found]


def _one_of_set(folder: Path) -> OneOfSet:
    place = Location(file=str(folder))
    try:
        origin = _origin(str(folder))
    except SourceError as error:
        return OneOfSet(place=place, said=error.message)
    write = partial(write_harbor_case, str(folder))
    return OneOfSet(name=folder.name, place=place, origin=origin, write=write)


def _origin(folder: str) -> str:
    return f"harbor:{tree_digest(folder)}"


def _is_task(folder: Path) -> bool:
    return any((folder / name).is_file() for name in ("task.toml", "task.yaml"))


def _read(folder: Path) -> _Task:
    if (folder / "task.toml").is_file():
        return _harbor(folder)
    if (folder / "task.yaml").is_file():
        return _terminal_bench(folder)
    raise InputError(
        f"{folder} is no task folder: it has neither task.toml nor task.yaml",
        hint="name a task's folder, or one that has such folders",
    )


def _harbor(folder: Path) -> _Task:
    file = folder / "task.toml"
    try:
        said = tomllib.loads(file.read_text(encoding="utf-8"))
        file = folder / "instruction.md"
        prompt = file.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{file}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise InputError(f"{file}: {error}") from error
    environment = _table(said, "environment")
    context = folder.resolve() / "environment"
    return _Task(
        form="Harbor",
        name=folder.resolve().name,
        prompt=prompt,
        agent_s=_seconds(_table(said, "agent"), "timeout_sec", 1800.0),
        tests_s=_seconds(_table(said, "verifier"), "timeout_sec", 300.0),
        network=environment.get("allow_internet") is True,
        image=str(environment.get("docker_image") or ""),
        context=context if context.is_dir() else None,
        dockerfile=_file(context / "Dockerfile"),
        script=_file(folder / "tests/test.sh"),
        solution=_file(folder / "solution/solve.sh"),
        notes=_services(context),
    )


def _terminal_bench(folder: Path) -> _Task:
    import yaml

    file = folder / "task.yaml"
    try:
        said = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise InputError(f"{file}: {error}") from error
    table = cast("dict[str, Json]", said) if isinstance(said, dict) else {}
    prompt = table.get("instruction")
    if not isinstance(prompt, str):
        raise InputError(f"{file}: instruction: a text is required")
    return _Task(
        form="Terminal-Bench",
        name=folder.resolve().name,
        prompt=prompt,
        agent_s=_seconds(table, "max_agent_timeout_sec", 1800.0),
        tests_s=_seconds(table, "max_test_timeout_sec", 300.0),
        network=False,
        image="",
        context=folder.resolve(),
        dockerfile=_file(folder.resolve() / "Dockerfile"),
        script=_file(folder / "run-tests.sh"),
        solution=_file(folder / "solution.sh"),
        notes=_services(folder),
    )


def _services(context: Path) -> list[str]:
    file = next(
        (f for f in ("docker-compose.yaml", "docker-compose.yml") if (context / f).is_file()), ""
    )
    return [f"{file} is not read: a case has one image, and no services beside it"] if file else []


def _table(said: dict[str, Json], name: str) -> dict[str, Json]:
    found = said.get(name)
    return found if isinstance(found, dict) else {}


def _seconds(said: dict[str, Json], name: str, default: float) -> float:
    found = said.get(name)
    if isinstance(found, bool) or not isinstance(found, int | float) or found <= 0:
        return default
    return float(found)


def _file(path: Path) -> Path | None:
    # A task is somebody's: a link in it could name any file of this machine.
    return path if path.is_file() and not path.is_symlink() else None


def _image(task: _Task) -> tuple[str, bool, str]:
    """The image's name, whether it is there, and its workdir: it is built where that can be."""
    if task.image:
        return task.image, True, _workdir(task)
    if task.dockerfile is None or task.context is None:
        raise InputError(
            f"{task.name}: it has neither a Dockerfile nor a docker_image",
            hint=f"it is looked for at {_LAYOUT[task.form][0]}",
        )
    plain = _NAME.sub("-", task.name).strip("-._").lower() or "task"
    digest = hashlib.sha256(tree_digest(str(task.context)).encode()).hexdigest()[:12]
    image = f"localhost/assay-{plain}:{digest}"
    try:
        engine: ContainerEngine = find_engine()
    except ProvisionError as error:
        words = ["build", "--tag", image, "--file", str(task.dockerfile), str(task.context)]
        task.notes.append(f"{error.message}; build it: podman {shlex.join(words)}")
        return image, False, _workdir(task)
    build_image(engine, str(task.context), str(task.dockerfile), tag=image)
    return image, True, _workdir(task, engine.workdir(image))


def _workdir(task: _Task, said: str = "") -> str:
    if said.rstrip("/"):
        return said.rstrip("/")
    text = task.dockerfile.read_text("utf-8", "replace") if task.dockerfile else ""
    found = _WORKDIR.findall(text)
    path = found[-1].strip("\"'").rstrip("/") if found else ""
    if path.startswith("/") and "$" not in path:
        return path
    task.notes.append("no WORKDIR is known: the workspace is /app; correct container.workdir")
    return "/app"


def _copy_tests(task: _Task, hidden: Path) -> list[str]:
    """Copy what is hidden while the agent works; the paths, below the directory of tests."""
    if task.script is None:
        raise InputError(
            f"{task.name}: it has no script of tests",
            hint=f"it is looked for at {_LAYOUT[task.form][1]}",
        )
    place = task.script.parent / "tests" if task.form == "Terminal-Bench" else task.script.parent
    sources = {p.relative_to(place).as_posix(): p for p in place.rglob("*") if _file(p)}
    for name, path in {**sources, task.script.name: task.script}.items():
        (hidden / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, hidden / name)
    return sorted({*sources, task.script.name})


def _write_recordings(task: _Task, recordings: Path) -> None:
    (recordings / "noop").mkdir(parents=True)
    (recordings / "noop/answer.txt").write_text("I changed nothing.\n")
    if task.solution is None:
        task.notes.append("it has no solution: nothing proves that the case can be passed")
        return
    (recordings / "reference").mkdir()
    # A recording is started by sh; solutions are written for bash.
    again = '[ -n "$BASH_VERSION" ] || exec /bin/bash "$0" "$@"\n'
    text = task.solution.read_text(encoding="utf-8", errors="surrogateescape")
    (recordings / "reference/run.sh").write_bytes((again + text).encode("utf-8", "surrogateescape"))
    if any(p != task.solution for p in task.solution.parent.iterdir()) and task.form == "Harbor":
        task.notes.append("only solve.sh of the solution is carried over, not the files beside it")


def _case_text(task: _Task, *, image: str, workdir: str, hidden: list[str]) -> str:
    assert task.script is not None
    text = task.script.read_text("utf-8", "replace")
    container: dict[str, Json] = {"image": image, "workdir": workdir}
    inject: list[Json] = [{"src": f"hidden/{name}", "dest": f"{_TESTS}/{name}"} for name in hidden]
    tests = [name for name in hidden if name.rpartition("/")[2].startswith("test_")]
    python = [name for name in tests if name.endswith(".py")]
    grader: dict[str, Json] = {"type": "tests", "timeout_s": task.tests_s, "inject": inject}
    if python and _STARTS_PYTEST.search(text):
        wanted = dict.fromkeys(["pytest", *_WITH.findall(text)])
        pinned = [name for name in wanted if name.partition("==")[0] != "pytest" or "==" in name]
        install = ["python3", "-m", "pip", "install", "--quiet", *(pinned or ["pytest"])]
        names = [f"{_TESTS}/{name}" for name in python]
        grader["cmd"] = shlex.join(["python3", "-m", "pytest", *names])
        check = "python3 -c 'import pytest' 2>/dev/null"
        container["setup"] = [f"{check} || {shlex.join(install)}"]
        task.notes.append(
            f"{task.script.name} is not run: its pytest is, in the image, so that each test is "
            "told apart; what else it did stands in no grader"
        )
    else:
        grader["cmd"] = _REWARD.format(
            script=shlex.quote(task.script.name), reward=_REWARDS[task.form], report=_REPORT
        )
        grader["junit_xml"] = [_REPORT]
        grader["expected_ids"] = ["reward"]
        if _FETCHES.search(text):
            task.notes.append(
                f"{task.script.name} installs something, and has no network: do it "
                "in container.setup"
            )
    models: list[Json] = ["noop"] if task.solution is None else ["reference", "noop"]
    blocks: list[dict[str, Json]] = [
        {"id": _NAME.sub("-", task.name).strip("-._") or "task"},
        {"task": {"prompt": tidy(task.prompt)}},
        {"container": container},
        {"matrix": {"harnesses": ["replay"], "models": models}},
        {"graders": [grader]},
        {"limits": {"agent_timeout_s": task.agent_s, "network": task.network}},
    ]
    head = _HEAD.format(id=task.name, form=task.form, workdir=workdir)
    return head + "\n".join(yaml_text(block) for block in blocks)
