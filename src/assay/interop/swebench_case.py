"""Write a row of SWE-bench's format as a case."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from assay.errors import InputError, ProvisionError, SourceError
from assay.interop.swebench import SweBenchInstance
from assay.interop.writing import ORIGIN, WrittenCase, files_below, new_directory, tidy
from assay.registry.files import yaml_text
from assay.scoring.json_safe import Json
from assay.tasks.archives import copy_tree, unpack
from assay.tasks.blocks import ContainerSpec
from assay.tasks.origin import Source, is_local
from assay.tasks.packages import fetch_sdist
from assay.tasks.repositories import export_commit
from assay.types.codec import to_json

_SECONDS = 120.0
_ENV = {
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "HOME": "/nonexistent",
    "LC_ALL": "C",
}


@dataclass(frozen=True, slots=True)
class TreeChange:
    """What a patch did to a tree.

    Attributes:
        written: Paths that it added or changed, sorted.
        deleted: Paths that it removed, sorted.
    """

    written: tuple[str, ...]
    deleted: tuple[str, ...]


def apply_patch(patch: str, tree: str, *, what: str) -> TreeChange:
    """Apply a patch with ``git apply``, outside of any repository: no hook or filter can run.

    Raises:
        InputError: If it does not fit, leads out of the tree, or makes a link or a submodule.
        SourceError: If there is no git.
    """
    before = _contents(tree)
    with tempfile.TemporaryDirectory(prefix="assay-patch-") as scratch:
        file = Path(scratch, "patch")
        # Rows often lack the last line feed, without which git calls the patch corrupt.
        text = patch if patch.endswith("\n") else f"{patch}\n"
        file.write_bytes(text.encode("utf-8", "surrogateescape"))
        _git_apply(str(file), tree, what)
    after = _contents(tree)
    written = [path for path, content in after.items() if before.get(path) != content]
    for path in written:
        if not stat.S_ISREG(Path(tree, path).lstat().st_mode):
            raise InputError(
                f"{what} makes {path!r} a link or another special file",
                hint="only regular files can be part of a case",
            )
    return TreeChange(tuple(sorted(written)), tuple(sorted(before.keys() - after.keys())))


def _git_apply(file: str, tree: str, what: str) -> None:
    root = str(Path(tree).resolve())
    env = {
        **_ENV,
        "PATH": os.environ.get("PATH", os.defpath),
        # Inside somebody's repository, git would take paths as relative to its root.
        "GIT_CEILING_DIRECTORIES": str(Path(root).parent),
    }
    argv = ["git", "-c", "core.symlinks=true", "apply", "--whitespace=nowarn", "-p1", file]
    try:
        done = subprocess.run(
            argv, cwd=root, env=env, capture_output=True, timeout=_SECONDS, check=False
        )
    except FileNotFoundError as error:
        raise SourceError("git is not installed", hint="install git") from error
    except subprocess.TimeoutExpired as error:
        raise InputError(f"{what} takes more than {_SECONDS:.0f} s to apply") from error
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip()
        raise InputError(
            f"{what} cannot be applied: {_printable(said[-500:])}",
            hint="is the source the one that the patch was made for?",
        )


def _contents(tree: str) -> dict[str, str]:
    """Every path of a tree that is not a directory, with a digest of what it is."""
    found: dict[str, str] = {}
    for folder, directories, files in os.walk(tree):
        links = [name for name in directories if Path(folder, name).is_symlink()]
        for name in [*files, *links]:
            path = Path(folder, name)
            found[path.relative_to(tree).as_posix()] = _digest(path)
    return found


def _digest(path: Path) -> str:
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        return f"link {path.readlink()}"
    if not stat.S_ISREG(status.st_mode):
        return "special"
    with path.open("rb") as stream:
        content = hashlib.file_digest(stream, "sha256").hexdigest()
    return f"{bool(status.st_mode & 0o100)} {content}"


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)


_TEST_PATCH = "hidden/test.patch"
_DIFF_PATHS = re.compile(r"^\+\+\+ b/([^\t\n]+)", re.MULTILINE)


@dataclass(slots=True)
class _Parts:
    """What a case is made of, besides what the row says.

    Attributes:
        source: The block ``source`` of the case.
        hidden: Paths of the test files that are injected.
        in_src: Whether the project's packages are below ``src``.
        python: The Python of its image; empty for the one that such images usually have.
        is_pytest: Whether the project is pytest itself.
        runnable: Whether these files are there.
        notes: See `WrittenCase`.
    """

    source: dict[str, Json]
    hidden: tuple[str, ...] = ()
    in_src: bool = False
    python: str = ""
    is_pytest: bool = False
    runnable: bool = False
    notes: list[str] = field(default_factory=list[str])


def write_case(
    instance: SweBenchInstance,
    directory: str,
    *,
    source: Source | None = None,
    cache_dir: str,
) -> WrittenCase:
    """Write a case: what is asked, the source, the hidden tests, a reference and a no-op.

    With a source the hidden files are whole (the tests as they are after ``test_patch``), and the
    reference is ``patch`` applied. A row that names an image becomes a case that runs in it; where
    no source is given, what the image has at ``/testbed`` is one. Without any only the patches can
    be kept: the case says what is missing, and does not load until it is there.

    Args:
        instance: The row.
        directory: Where to; absent or empty. It appears only when it is complete.
        source: Where the files of the base commit are: a directory, a source distribution, or a
            repository (then ``commit`` is the row's). The files of a local repository are copied
            into the case, which then needs neither it nor a network.
        cache_dir: Where what is fetched is kept.

    Raises:
        InputError: If the patches do not fit the source or are hostile, or the directory is not
            empty.
        SourceError: If the source cannot be fetched.
    """
    with new_directory(directory) as whole:
        parts = _write_parts(instance, whole, Path(directory), source, cache_dir)
        (whole / "case.yaml").write_text(
            _case_text(instance, parts, origin_of(instance, source)), encoding="utf-8"
        )
        files = tuple(files_below(whole))
    return WrittenCase(
        directory=directory, files=files, runnable=parts.runnable, notes=tuple(parts.notes)
    )


def _write_parts(
    instance: SweBenchInstance, case: Path, target: Path, source: Source | None, cache_dir: str
) -> _Parts:
    parts = _Parts(source=_source_block(instance, source, target))
    _write(case / "recordings/noop/answer.txt", "I changed nothing.\n")
    _write(case / "recordings/reference/answer.txt", "This is the repair of the project itself.\n")
    if source is None and not _has_image(instance, parts, cache_dir):
        _write(case / _TEST_PATCH, instance.test_patch)
        _write(case / "recordings/reference/reference.patch", instance.patch)
        parts.hidden = tuple(dict.fromkeys(_DIFF_PATHS.findall(instance.test_patch)))
        parts.notes.append(
            "the hidden files are not there yet, so the case does not load: import again with the "
            f"source of {instance.repo} at {instance.base_commit[:12]}"
        )
        return parts
    with tempfile.TemporaryDirectory(prefix="assay-base-") as scratch:
        tree = str(Path(scratch, "tree"))
        if source is None:
            parts.source, parts.python = {}, _take_out(instance, tree, cache_dir)
        else:
            Path(tree).mkdir()
            _fetch(source, tree, cache_dir)
        parts.in_src = _is_in_src(Path(tree))
        parts.is_pytest = any(Path(tree, name).is_dir() for name in ("src/_pytest", "_pytest"))
        if _is_clone(source):
            shutil.copytree(tree, case / "source", symlinks=True)
        tests = apply_patch(instance.test_patch, tree, what=f"test_patch of {instance.instance_id}")
        _copy(tests.written, tree, case / "hidden")
        solution = apply_patch(instance.patch, tree, what=f"patch of {instance.instance_id}")
        _copy(solution.written, tree, case / "recordings/reference/files")
    _note_oddities(tests, solution, parts)
    if solution.deleted:
        listing = "".join(f"{path}\n" for path in solution.deleted)
        _write(case / "recordings/reference/deleted.txt", listing)
    parts.hidden, parts.runnable = tests.written, True
    return parts


def _has_image(instance: SweBenchInstance, parts: _Parts, cache_dir: str) -> bool:
    """Whether the image that a row names can be had here."""
    from assay.eval.workspaces.images import prepare

    if not instance.image_name:
        return False
    try:
        prepare(ContainerSpec(image=instance.image_name), cache_dir)
    except ProvisionError as error:
        parts.notes.append(f"{error.message} ({error.hint})" if error.hint else error.message)
        return False
    return True


def _take_out(instance: SweBenchInstance, tree: str, cache_dir: str) -> str:
    """Copy the project out of its image; returns the Python that it is installed for."""
    from assay.eval.workspaces.images import copy_workdir, prepare

    spec = ContainerSpec(image=instance.image_name, workdir=_TESTBED, python=_TESTBED_PYTHON)
    image = prepare(spec, cache_dir)
    copy_workdir(image, tree)
    shutil.rmtree(Path(tree, ".git"), ignore_errors=True)
    return _TESTBED_PYTHON if image.python else "python3"


def _fetch(source: Source, tree: str, cache_dir: str) -> None:
    if source.pypi is not None:
        unpack(fetch_sdist(source.pypi, source.sha256, cache_dir), tree)
    elif source.path is not None:
        copy_tree(str(Path(source.path).resolve()), tree)
    else:
        url, commit = source.url or "", source.commit or ""
        url = str(Path(url).resolve()) if is_local(url) else url
        export_commit(url, commit, "", tree, cache_dir)


def _source_block(
    instance: SweBenchInstance, source: Source | None, target: Path
) -> dict[str, Json]:
    if source is not None and source.pypi is not None:
        return {"pypi": source.pypi, "sha256": source.sha256}
    if source is not None and source.path is not None:
        return {"path": os.path.relpath(Path(source.path).resolve(), target.resolve())}
    if _is_clone(source):
        return {"path": "source"}
    url = source.url if source is not None and source.url else instance.url
    return {"git": url, "commit": instance.base_commit}


def _is_clone(source: Source | None) -> bool:
    """Whether the source is a repository on this machine."""
    return source is not None and bool(source.url) and is_local(source.url or "")


def _is_in_src(tree: Path) -> bool:
    """Whether a project keeps its packages below ``src``, where nothing finds them by itself."""
    src = tree / "src"
    if not src.is_dir() or (src / "__init__.py").exists():
        return False
    return any(
        one.suffix == ".py" or (one / "__init__.py").is_file()
        for one in src.iterdir()
        if not one.is_symlink()
    )


def _note_oddities(tests: TreeChange, solution: TreeChange, parts: _Parts) -> None:
    if tests.deleted:
        gone = ", ".join(tests.deleted[:5])
        parts.notes.append(f"test_patch deletes {gone}: hidden files only add and replace")
    if both := sorted({*tests.written} & {*solution.written}):
        parts.notes.append(f"both patches change {', '.join(both[:5])}: the hidden one wins")


def _copy(paths: Iterable[str], tree: str, target: Path) -> None:
    for path in paths:
        place = target / path
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(Path(tree, path), place)
        if os.access(Path(tree, path), os.X_OK):
            place.chmod(0o755)


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode("utf-8", "surrogateescape"))


_TESTBED, _TESTBED_PYTHON = "/testbed", "/opt/miniconda3/envs/testbed/bin/python"
_HEAD = """\
# {id}: a repaired bug of {repo}, imported from SWE-bench's format.
# Try it:  assay run {id} --harness replay   (reference: 1, noop: 0)
"""
_ENVIRONMENT = """
# What the project's own tests need, built once and kept. Pin it: a new pytest may judge otherwise.
# `install: editable` installs the source itself, for a project that cannot be imported in place.
environment:
  kind: pip-venv
  requirements: [pytest]
"""
_CONTAINER = """
# Everything runs in the image, in which the project is installed at /testbed. The history of its
# repository may hold the repair.
"""
_SRC = """\
  # The project's packages are below src.
  env: {PYTHONPATH: /workspace/src}
"""
_PYTEST = """
# This is pytest's own repository: its tests have to run under the pytest that is graded. It is
# built in place, in the sandbox, with what is listed here. Add what its tests need, and pin it.
environment:
  kind: pip-venv
  install: editable
  requirements:
    - setuptools>=77
    - setuptools-scm>=6.2.3
    - wheel
    # What it needs itself, and its tests.
    - iniconfig
    - packaging
    - pluggy
    - pygments
    - attrs
    - hypothesis
    - xmlschema
  pip_args: [--no-build-isolation]
  env: {{SETUPTOOLS_SCM_PRETEND_VERSION: {version}}}
"""
_MATRIX = """
# Two recordings prove the case: the project's own repair has to pass and doing nothing has to fail.
# Add your agents to harnesses.yaml and to this list.
matrix:
  harnesses: [replay]
  models: [reference, noop]
"""
_GRADERS = """
# One run of the hidden tests. Every id is looked up by name: a test that was skipped, deselected
# or never reached has failed. Unless all of pass_to_pass pass, the reward is 0.
"""
_NOT_THERE = """\
# NOT THERE YET: the files under `inject`. They are those of the base commit with hidden/test.patch
# applied; until then this case does not load. Import again with --source to have them written.
"""


def _environment(instance: SweBenchInstance, parts: _Parts) -> str:
    if instance.image_name:
        python = parts.python or _TESTBED_PYTHON
        container: dict[str, Json] = {"image": instance.image_name, "workdir": _TESTBED}
        block = yaml_text({"container": {**container, "python": python}})
        return _CONTAINER + block + ("" if parts.source else "setup: {run: [rm -rf .git]}\n")
    if parts.is_pytest:
        return _PYTEST.format(version=json.dumps(instance.version or "0"))
    return _ENVIRONMENT + (_SRC if parts.in_src else "")


def origin_of(instance: SweBenchInstance, source: Source | None) -> str:
    """A digest of what a case is made of: the row, and where its files are from."""
    said = json.dumps([to_json(instance), to_json(source)], sort_keys=True)
    return f"swebench:{hashlib.sha256(said.encode('utf-8', 'surrogateescape')).hexdigest()}"


def _case_text(instance: SweBenchInstance, parts: _Parts, origin: str) -> str:
    grader: dict[str, Json] = {
        "type": "swebench",
        "inject": [{"src": f"hidden/{path}", "dest": path} for path in parts.hidden],
        "fail_to_pass": list[Json](instance.fail_to_pass),
    }
    if instance.pass_to_pass:
        grader["pass_to_pass"] = list[Json](instance.pass_to_pass)
    said: dict[str, Json] = {"repo": instance.repo, "base_commit": instance.base_commit}
    for name in ("version", "environment_setup_commit", "created_at"):
        if value := str(getattr(instance, name)):
            said[name] = value
    return "".join(
        (
            _HEAD.format(id=instance.instance_id, repo=instance.repo),
            yaml_text({"id": instance.instance_id}),
            "\n",
            yaml_text({"task": {"prompt": tidy(instance.problem_statement)}}),
            "\n# Where the agent starts: before the repair.\n",
            yaml_text({"source": parts.source}) if parts.source else "# What its image has.\n",
            _environment(instance, parts),
            _MATRIX,
            _GRADERS,
            "" if parts.runnable else _NOT_THERE,
            yaml_text({"graders": [grader]}),
            "\n",
            yaml_text({"metadata": {"swebench": said, ORIGIN: origin}}),
        )
    )
