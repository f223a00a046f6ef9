"""Read a task folder of Harbor or Terminal-Bench, and write it as a case in a container image."""

from __future__ import annotations

import hashlib
import math
import os
import re
import reprlib
import shlex
import shutil
import stat
import tomllib
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, TypeVar, cast

from assay.errors import InputError, Location, ProvisionError, SourceError
from assay.eval.workspaces.images import ContainerEngine, build_image, find_engine
from assay.interop.writing import (
    ORIGIN,
    OneOfSet,
    WrittenCase,
    check_loads,
    files_below,
    new_directory,
    tidy,
)
from assay.registry.files import yaml_text
from assay.sandbox.host import open_inside
from assay.scoring.json_safe import Json
from assay.tasks.case_files import tree_digest, tree_entries

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


@dataclass(frozen=True, slots=True)
class _Folder:
    """A task's folder, which is somebody's: a link in it could name any file of this machine.

    Whatever is read of a task is read here. No part of a path may be a link, and only files and
    directories are taken.
    """

    path: Path

    @property
    def name(self) -> str:
        return self.path.resolve().name

    def has(self, relative: str) -> bool:
        """Whether there is a file or directory of this path.

        Raises:
            InputError: A link is in its place or above it, or it is neither.
        """
        place = self.path
        for part in Path(relative).parts:
            place /= part
            try:
                mode = place.lstat().st_mode
            except (FileNotFoundError, NotADirectoryError):
                return False
            except OSError as error:
                raise InputError(f"{place}: cannot be read: {error.strerror}") from error
            _refuse_unlike(place, mode)
        return True

    @contextmanager
    def _open(self, relative: str) -> Generator[IO[bytes]]:
        place = self.path / relative
        self.has(relative)
        try:
            with os.fdopen(open_inside(str(self.path), relative, os.O_RDONLY), "rb") as stream:
                _refuse_unlike(place, os.fstat(stream.fileno()).st_mode)
                yield stream
        except OSError as error:
            raise InputError(f"{place}: cannot be read: {error.strerror}") from error

    def read(self, relative: str) -> bytes:
        """What a file holds.

        Raises:
            InputError: It cannot be read, or `has` would refuse it.
        """
        with self._open(relative) as stream:
            return stream.read()

    def copy(self, relative: str, to: Path) -> None:
        """Copy a file, and whether it may be executed."""
        with self._open(relative) as stream, to.open("wb") as copy:
            shutil.copyfileobj(stream, copy)
            if os.fstat(stream.fileno()).st_mode & stat.S_IXUSR:
                to.chmod(0o755)

    def text(self, relative: str) -> str:
        try:
            return self.read(relative).decode("utf-8")
        except UnicodeDecodeError as error:
            raise InputError(f"{self.path / relative}: {error}") from error

    def files(self, below: str) -> list[str]:
        """Paths of the files below a directory, relative to it; none where it is missing."""
        if not self.has(below):
            return []
        found: list[str] = []
        for relative, path, status in tree_entries(str(self.path / below), everything=True):
            _refuse_unlike(Path(path), status.st_mode)
            if stat.S_ISREG(status.st_mode):
                found.append(relative)
        return found


def _refuse_unlike(place: Path, mode: int) -> None:
    if stat.S_ISLNK(mode):
        said = f"{place} is a link, and no link of a task is followed"
        raise InputError(said, hint="put what it leads to in its place")
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise InputError(f"{place} is neither a file nor a directory", hint="remove it")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    """What a task folder says, in either form; its files by their paths in the folder."""

    folder: _Folder
    form: str
    name: str
    prompt: str
    agent_s: float
    tests_s: float
    network: bool
    image: str
    context: str
    dockerfile: str
    script: str
    solution: str
    notes: list[str] = field(default_factory=list[str])


def write_harbor_case(folder: str, directory: str) -> WrittenCase:
    """Write a task folder as a case: its image built where an engine is at hand, else named.

    Args:
        folder: Has a ``task.toml`` (Harbor) or a ``task.yaml`` (Terminal-Bench).
        directory: Where to; absent or empty. It appears only when it is complete.

    Raises:
        InputError: The folder is no task, a link stands where a file of it should, its case would
            not load, or the directory is not empty.
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
        check_loads(whole)
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
    if folder.is_symlink():
        return OneOfSet(place=place, said="it is a link: name what it leads to, to import that")
    try:
        origin = _origin(str(folder))
    except SourceError as error:
        return OneOfSet(place=place, said=error.message)
    write = partial(write_harbor_case, str(folder))
    return OneOfSet(name=folder.name, place=place, origin=origin, write=write)


def _origin(folder: str) -> str:
    return f"harbor:{tree_digest(folder)}"


def _is_task(folder: Path) -> bool:
    return any(os.path.lexists(folder / name) for name in ("task.toml", "task.yaml"))


def _read(path: Path) -> _Task:
    folder = _Folder(path)
    if folder.has("task.toml"):
        return _harbor(folder)
    if folder.has("task.yaml"):
        return _terminal_bench(folder)
    raise InputError(
        f"{path} is no task folder: it has neither task.toml nor task.yaml",
        hint="name a task's folder, or one that has such folders",
    )


def _harbor(folder: _Folder) -> _Task:
    file = folder.path / "task.toml"
    try:
        said = tomllib.loads(folder.text("task.toml"))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{file}: {error}") from error
    top = _Said(file, said)
    environment = top.table("environment")
    return _Task(
        folder=folder,
        form="Harbor",
        name=folder.name,
        prompt=folder.text("instruction.md"),
        agent_s=top.table("agent").seconds("timeout_sec", 1800.0),
        tests_s=top.table("verifier").seconds("timeout_sec", 300.0),
        network=environment.value("allow_internet", bool, "true or false", default=False),
        image=environment.value("docker_image", str, "a text", default=""),
        context="environment",
        dockerfile=_if_there(folder, "environment/Dockerfile"),
        script=_if_there(folder, "tests/test.sh"),
        solution=_if_there(folder, "solution/solve.sh"),
        notes=_services(folder, "environment"),
    )


def _terminal_bench(folder: _Folder) -> _Task:
    import yaml

    file = folder.path / "task.yaml"
    try:
        said = yaml.safe_load(folder.text("task.yaml"))
    except yaml.YAMLError as error:
        raise InputError(f"{file}: {error}") from error
    top = _Said(file, cast("dict[str, Json]", said) if isinstance(said, dict) else {})
    if top.said.get("instruction") is None:
        raise InputError(f"{file}: instruction: a text is required")
    return _Task(
        folder=folder,
        form="Terminal-Bench",
        name=folder.name,
        prompt=top.value("instruction", str, "a text", default=""),
        agent_s=top.seconds("max_agent_timeout_sec", 1800.0),
        tests_s=top.seconds("max_test_timeout_sec", 300.0),
        network=False,
        image="",
        context="",
        dockerfile=_if_there(folder, "Dockerfile"),
        script=_if_there(folder, "run-tests.sh"),
        solution=_if_there(folder, "solution.sh"),
        notes=_services(folder, ""),
    )


def _if_there(folder: _Folder, relative: str) -> str:
    return relative if folder.has(relative) else ""


def _services(folder: _Folder, context: str) -> list[str]:
    names = ("docker-compose.yaml", "docker-compose.yml")
    file = next((name for name in names if folder.has(f"{context}/{name}".lstrip("/"))), "")
    return [f"{file} is not read: a case has one image, and no services beside it"] if file else []


_SECONDS = "a finite number of seconds above 0"
_T = TypeVar("_T", str, bool)


@dataclass(frozen=True, slots=True)
class _Said:
    """A table of a task's file; what is of a wrong type is refused by its name."""

    file: Path
    said: dict[str, Json]
    name: str = ""

    def table(self, name: str) -> _Said:
        found = self.said.get(name)
        if found is not None and not isinstance(found, dict):
            raise self._refused(name, "a table", found)
        return _Said(self.file, found or {}, f"{self.name}{name}.")

    def value(self, name: str, kind: type[_T], what: str, *, default: _T) -> _T:
        found = self.said.get(name)
        if found is None:
            return default
        if not isinstance(found, kind):
            raise self._refused(name, what, found)
        return found

    def seconds(self, name: str, default: float) -> float:
        found = self.said.get(name)
        if found is None:
            return default
        if isinstance(found, bool) or not isinstance(found, int | float):
            raise self._refused(name, _SECONDS, found)
        if not 0 < found < math.inf:
            raise self._refused(name, _SECONDS, found)
        return float(found)

    def _refused(self, name: str, what: str, found: Json) -> InputError:
        shown = reprlib.repr(found)
        return InputError(f"{self.file}: {self.name}{name}: {what} is required, not {shown}")


def _image(task: _Task) -> tuple[str, bool, str]:
    """The image's name, whether it is there, and its workdir: it is built where that can be."""
    if task.image:
        return task.image, True, _workdir(task)
    if not task.dockerfile:
        raise InputError(
            f"{task.name}: it has neither a Dockerfile nor a docker_image",
            hint=f"it is looked for at {_LAYOUT[task.form][0]}",
        )
    plain = _NAME.sub("-", task.name).strip("-._").lower() or "task"
    context = str(task.folder.path.resolve() / task.context)
    file = str(task.folder.path.resolve() / task.dockerfile)
    digest = hashlib.sha256(tree_digest(context).encode()).hexdigest()[:12]
    image = f"localhost/assay-{plain}:{digest}"
    try:
        engine: ContainerEngine = find_engine()
    except ProvisionError as error:
        words = ["build", "--tag", image, "--file", file, context]
        task.notes.append(f"{error.message}; build it: podman {shlex.join(words)}")
        return image, False, _workdir(task)
    build_image(engine, context, file, tag=image)
    return image, True, _workdir(task, engine.workdir(image))


def _workdir(task: _Task, said: str = "") -> str:
    if said.rstrip("/"):
        return said.rstrip("/")
    read = task.folder.read(task.dockerfile) if task.dockerfile else b""
    text = read.decode("utf-8", "replace")
    found = _WORKDIR.findall(text)
    path = found[-1].strip("\"'").rstrip("/") if found else ""
    if path.startswith("/") and "$" not in path:
        return path
    task.notes.append("no WORKDIR is known: the workspace is /app; correct container.workdir")
    return "/app"


def _copy_tests(task: _Task, hidden: Path) -> list[str]:
    """Copy what is hidden while the agent works; the paths, below the directory of tests."""
    if not task.script:
        raise InputError(
            f"{task.name}: it has no script of tests",
            hint=f"it is looked for at {_LAYOUT[task.form][1]}",
        )
    sources = {name: f"{_TESTS}/{name}" for name in task.folder.files(_TESTS)}
    sources[_script_name(task)] = task.script
    for name, path in sources.items():
        (hidden / name).parent.mkdir(parents=True, exist_ok=True)
        task.folder.copy(path, hidden / name)
    return sorted(sources)


def _script_name(task: _Task) -> str:
    return task.script.rpartition("/")[2]


def _write_recordings(task: _Task, recordings: Path) -> None:
    (recordings / "noop").mkdir(parents=True)
    (recordings / "noop/answer.txt").write_text("I changed nothing.\n")
    if not task.solution:
        task.notes.append("it has no solution: nothing proves that the case can be passed")
        return
    (recordings / "reference").mkdir()
    # A recording is started by sh; solutions are written for bash.
    again = b'[ -n "$BASH_VERSION" ] || exec /bin/bash "$0" "$@"\n'
    text = task.folder.read(task.solution)
    (recordings / "reference/run.sh").write_bytes(again + text)
    if task.form == "Harbor" and task.folder.files("solution") != ["solve.sh"]:
        task.notes.append("only solve.sh of the solution is carried over, not the files beside it")


def _case_text(task: _Task, *, image: str, workdir: str, hidden: list[str]) -> str:
    text, script = task.folder.read(task.script).decode("utf-8", "replace"), _script_name(task)
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
            f"{script} is not run: its pytest is, in the image, so that each test is "
            "told apart; what else it did stands in no grader"
        )
    else:
        grader["cmd"] = _REWARD.format(
            script=shlex.quote(script), reward=_REWARDS[task.form], report=_REPORT
        )
        grader["junit_xml"] = [_REPORT]
        grader["expected_ids"] = ["reward"]
        if _FETCHES.search(text):
            task.notes.append(
                f"{script} installs something, and has no network: do it in container.setup"
            )
    models: list[Json] = ["reference", "noop"] if task.solution else ["noop"]
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
