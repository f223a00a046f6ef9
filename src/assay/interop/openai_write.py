"""Write an imported suite: graders, rows and the files that they came from."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from assay.errors import InputError
from assay.interop.openai_suite import Criterion, Suite
from assay.scoring.json_safe import Json
from assay.tasks.grader_files import load_graders

__all__ = ["GRADERS", "NEEDS_YOU", "ROWS", "write_suites"]

GRADERS = "graders.yaml"
"""What can be run."""

NEEDS_YOU = "needs-you.yaml"
"""What needs something before it can be run."""

ROWS = "data.jsonl"
"""The rows."""

_HEAD = """\
# Imported from OpenAI: {name}
# Grade the rows:  assay grade {rows} --graders {file}
"""
_HEAD_NEEDS = """\
# Imported from OpenAI: {name}
# These graders cannot run yet. What each of them needs stands above it.
"""


def write_suites(suites: Sequence[Suite], files: Sequence[str], directory: str) -> list[str]:
    """Write suites: one into the directory itself, several below it.

    Args:
        suites: What was imported.
        files: The files it came from, which are kept under ``origin/``.
        directory: Where to; absent or empty. It appears only when it is complete.

    Returns:
        Paths of what was written, relative to the directory, sorted.

    Raises:
        InputError: If the directory is not empty or cannot be written.
    """
    target = Path(directory)
    try:
        if os.path.lexists(target) and (not target.is_dir() or any(target.iterdir())):
            raise InputError(
                f"{directory} is already there", hint="nothing was changed; name another by --into"
            )
        target.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}-"))
    except OSError as error:
        raise InputError(f"cannot write {directory}: {error}") from error
    try:
        whole = beside / "suite"
        for suite in suites:
            _write_suite(suite, whole if len(suites) == 1 else whole / suite.slug)
        _keep(files, whole / "origin")
        written = sorted(p.relative_to(whole).as_posix() for p in whole.rglob("*") if p.is_file())
        whole.replace(target)
    except OSError as error:
        raise InputError(f"cannot write {directory}: {error}") from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return written


def _write_suite(suite: Suite, place: Path) -> None:
    place.mkdir(parents=True)
    runs = [c for c in suite.criteria if c.declaration is not None and c.fidelity != "needs you"]
    waits = [c for c in suite.criteria if c.declaration is not None and c.fidelity == "needs you"]
    name = _comment(suite.name)
    if runs:
        head = _HEAD.format(name=name, rows=ROWS, file=GRADERS)
        _write_graders(runs, suite, place / GRADERS, head)
    if waits:
        _write_graders(waits, suite, place / NEEDS_YOU, _HEAD_NEEDS.format(name=name))
    if suite.rows:
        with (place / ROWS).open("w", encoding="utf-8", newline="\n") as rows:
            for row in suite.rows:
                rows.write(json.dumps({"id": row.id, **row.data}) + "\n")


def _write_graders(criteria: Sequence[Criterion], suite: Suite, file: Path, head: str) -> None:
    parts = [head]
    for criterion in criteria:
        notes = "".join(f"# {_comment(note)}\n" for note in criterion.notes)
        parts.append(f"\n{notes}{_yaml([_declared(criterion, suite)])}")
    file.write_text("".join(parts), encoding="utf-8", newline="\n")
    load_graders(str(file))  # nothing is written that could not be read


def _declared(criterion: Criterion, suite: Suite) -> dict[str, Json]:
    """The declaration; in a suite of verdicts it is worth 1 where it passes and 0 where not."""
    declared = dict(criterion.declaration or {})
    if suite.has_verdicts and "pass_threshold" in declared:
        declared["pass_fail"] = True
    return declared


def _keep(files: Sequence[str], place: Path) -> None:
    place.mkdir(parents=True)
    for number, file in enumerate(files, 1):
        name = Path(file).name
        shutil.copyfile(file, place / (f"{number}-{name}" if (place / name).exists() else name))


def _comment(text: str) -> str:
    """A text that stays in its comment, whatever it holds."""
    return json.dumps(text)[1:-1].replace('\\"', '"')


def _yaml(data: list[Json]) -> str:
    import yaml

    class Dumper(yaml.SafeDumper):
        """Quotes all that is not plainly text, and writes texts of several lines as blocks."""

    def text_node(_: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
        plain = re.fullmatch(r"[A-Za-z_](?:[\w ./-]*[\w./])?", text, re.ASCII)
        style = "|" if "\n" in text else None if plain else '"'
        return yaml.ScalarNode("tag:yaml.org,2002:str", text, style=style)

    Dumper.add_representer(str, text_node)
    return yaml.dump(data, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=4_000)
