"""``assay doctor agents``: what can do the work of a case here, and how to install what cannot."""

from __future__ import annotations

import json
import re
import sys
from argparse import Namespace
from dataclasses import asdict
from functools import cache
from pathlib import Path

from assay.agents.presets import PRESETS, preset, started
from assay.errors import AssayError, InputError
from assay.frozen import frozen
from assay.reports.page import page_on
from assay.reports.plain import one_line

_SECONDS = 20.0
_VERSION = re.compile(r"\d+(?:\.\d+)+\S*")
_NAMED_VERSION = re.compile(rf"(?<=\bversion ){_VERSION.pattern}")


@frozen(kw_only=True)
class _Row:
    name: str
    program: str
    version: str
    protocol: str
    licence: str
    goes_on: bool
    fix: str


def run(given: Namespace) -> int:
    """Print them.

    Returns:
        0.
    """
    rows = [_row(name) for name in PRESETS]
    if given.json:
        print(json.dumps({"harnesses": [asdict(row) for row in rows]}, indent=2))
        return 0
    page = page_on(sys.stdout)
    for row in rows:
        mark = ("ok  ", "green") if row.program else ("--  ", "yellow")
        said = f"{row.version} ({row.program})".strip() if row.program else "not installed"
        page.line(mark, f" {row.name:<16} {said}", hanging=7)
        if row.fix:
            page.line(f"fix: {row.fix}", indent=7, hanging=5)
    return 0


def _row(name: str) -> _Row:
    found = preset(name)
    program, version, fix = "", "", ""
    try:
        program = found.find(str(Path.cwd())).program
        version = _version_of(program)
    except InputError as error:
        fix = error.hint or ""
    return _Row(
        name=name,
        program=program,
        version=version,
        protocol=found.protocol,
        licence=found.licence,
        goes_on=found.acp or bool(found.resume),
        fix=fix,
    )


@cache
def _version_of(program: str) -> str:
    """What it says of itself in the sandbox; empty where it says nothing, or cannot start there."""
    from assay.sandbox import Limits, Mount, run_command_sync

    start, mounts = started(program)
    try:
        told = run_command_sync(
            [*start, "--version"],
            workspace=None,
            mounts=[Mount(source=path, target=path) for path in mounts],
            limits=Limits(wall_seconds=_SECONDS),
        )
    except AssayError:
        return ""
    # One that knows no such option may name it where it complains.
    pattern = _VERSION if told.exit_code == 0 else _NAMED_VERSION
    match = pattern.search(told.stdout)
    return one_line(match[0].rstrip(".")) if match else ""
