"""``assay doctor``: what works here, what each missing part costs, and how to fix it."""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from assay.cli.options import add_db, add_json, add_yes, explain, moment
from assay.errors import InputError
from assay.reports.page import Part, page_on

if TYPE_CHECKING:
    from assay.sandbox.checks import SandboxReport

_MORE = """\
Agents are those that people install: name one in a case's matrix, or to `assay run --harness`. Each
runs in the sandbox and asks its model through the cell's gateway. Of images only what assay
unpacked is deleted; podman or docker keep what they have, and the next run unpacks it again.

exit status: 0 it works, 2 bad input, 3 cases cannot be graded here, or a run is at work"""
_EXAMPLES = """\
  assay doctor
  assay doctor agents
  assay doctor images
  assay doctor images --delete docker.io/library/python:3.12
  assay doctor images --unused 30d --yes"""


def add(parser: ArgumentParser) -> None:
    """Say what ``assay doctor`` takes."""
    explain(parser, _MORE, _EXAMPLES)
    add = parser.add_argument
    parts = "the agents that need no declaration, or the images that were unpacked here"
    add("part", nargs="?", choices=("agents", "images"), help=parts)
    named = "delete the files of this image: a name, or an id or its beginning"
    add("--delete", action="append", default=[], metavar="IMAGE", help=named)
    unused = "delete those of all images that were not needed since: 30d, 4w"
    add("--unused", type=moment, metavar="WHEN", help=unused)
    add_yes(parser)
    add_db(parser)
    add_json(parser)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Finding:
    name: str
    ok: bool
    detail: str
    cost: str = ""
    fix: str = ""
    needed: bool = False


_INSTALL = "brew install" if sys.platform == "darwin" else "apt-get install"
_PROGRAMS = (
    ("bash", ("--version",), "BashGrader cannot run", f"{_INSTALL} bash"),
    ("git", ("--version",), "cases with a git source cannot run", f"{_INSTALL} git"),
    ("uv", ("--version",), "cases with `environment: {kind: uv}` cannot run", "pip install uv"),
    ("node", ("--version",), "cases that test JavaScript cannot run", f"{_INSTALL} nodejs"),
)
_EXTRAS = (
    ("acp", "agent-client-protocol", "agents that speak ACP cannot run"),
    ("data", "pyarrow", "Parquet and Arrow files cannot be read"),
    ("languages", "tree-sitter", "`implemented` and `audit` of languages beside Python cannot run"),
    ("math", "math-verify", "math_equal cannot run"),
    ("mcp", "mcp", "MCP servers of the model agent cannot run"),
    ("otel", "opentelemetry-exporter-otlp-proto-http", "--otel cannot run"),
    ("server", "fastapi", "assay serve and assay view cannot run"),
    ("similarity", "sacrebleu", "similarity with BLEU, GLEU, METEOR and ROUGE cannot run"),
)


def run(given: Namespace) -> int:
    """Print the findings.

    Returns:
        0 if commands and cases can be graded here, else 3.
    """
    if given.part != "images" and (given.delete or given.unused):
        raise InputError("--delete and --unused are of images", hint="assay doctor images")
    if given.part is not None:
        from assay.cli import harnesses, images

        return {"agents": harnesses.run, "images": images.run}[given.part](given)
    findings = [
        _python(),
        *_sandbox(),
        *_functions(),
        *_programs(),
        _images(),
        *_extras(),
        _web_page(),
        _models(),
        _harnesses(),
        _state(),
    ]
    works = all(finding.ok for finding in findings if finding.needed)
    if given.json:
        from assay.sandbox.functions import FunctionLimits

        rows = [asdict(finding) for finding in findings]
        report = {"works": works, "findings": rows, "function_limits": asdict(FunctionLimits())}
        print(json.dumps(report, indent=2))
        return 0 if works else 3
    page = page_on(sys.stdout)
    for finding in findings:
        page.line(_mark(finding), f" {finding.name:<22} {finding.detail}", hanging=7)
        if not finding.ok:
            if finding.cost:
                page.line(f"costs you: {finding.cost}", indent=7, hanging=11)
            if finding.fix:
                page.line(f"fix:       {finding.fix}", indent=7, hanging=11)
    page.blank()
    page.line(_in_short(findings) if not works else "Everything that grading needs works.")
    return 0 if works else 3


def _in_short(findings: Sequence[_Finding]) -> str:
    """What does not work here, and which graders do nevertheless."""
    from assay.graders.kinds import COMMANDS, FUNCTIONS, KINDS

    broken = {finding.name for finding in findings if not finding.ok}
    if "sandbox" not in broken:
        return "Nothing can be kept here."
    isolated = [*COMMANDS, *(FUNCTIONS if "function graders" in broken else ())]
    rest = ", ".join(kind for kind in KINDS if kind not in isolated)
    return f"Grading in the sandbox does not work here. Without one these do: {rest}."


def _mark(finding: _Finding) -> Part:
    if finding.ok:
        return "ok  ", "green"
    return ("miss", "red") if finding.needed else ("--  ", "yellow")


def _python() -> _Finding:
    from assay.version import __version__

    detail = f"assay {__version__}, Python {platform.python_version()}, {platform.platform()}"
    return _Finding(name="python", ok=True, detail=detail, needed=True)


def _sandbox() -> list[_Finding]:
    from assay.graders.kinds import COMMANDS
    from assay.sandbox import probe

    cost = f"{', '.join(COMMANDS)} and agents that run commands are errors, never unsandboxed"
    return _tier("sandbox", probe(), cost, needed=True)


def _tier(name: str, found: SandboxReport, cost: str, *, needed: bool = False) -> list[_Finding]:
    """Which tier of a sandbox works, and what was looked at."""
    tier = _Finding(
        name=name,
        ok=found.tier is not None,
        detail=f"tier {found.tier}" if found.tier else "no tier works",
        cost=cost,
        needed=needed,
    )
    checks = (
        _Finding(name=f"  {check.name}", ok=check.ok, detail=check.detail, fix=check.fix)
        for check in found.checks
    )
    return [tier, *checks]


def _functions() -> list[_Finding]:
    from assay.graders.kinds import FUNCTIONS
    from assay.sandbox.functions import FunctionLimits
    from assay.sandbox.functions.tiers import function_tiers

    limits = FunctionLimits()
    shown = (
        f"{limits.cpu_seconds:g} s CPU, {limits.wall_seconds:g} s wall,"
        f" {limits.memory_bytes >> 20} MiB, {limits.processes} processes; {limits.load_seconds:g} s"
        f" to load; {limits.payload_bytes >> 20} MiB in, {limits.output_bytes >> 10} KiB out"
    )
    cost = f"{', '.join(FUNCTIONS)} are errors, never unsandboxed"
    tiers = _tier("function graders", function_tiers(), cost)
    return [*tiers, _Finding(name="  limits of a call", ok=True, detail=shown)]


def _programs() -> list[_Finding]:
    return [*(_program(*row) for row in _PROGRAMS), _pytest()]


def _pytest() -> _Finding:
    from assay.errors import GraderError
    from assay.graders.testing.runners import find_python
    from assay.types.submission import Workspace

    cost = "hidden tests for pytest cannot run, but for cases whose environment has it"
    try:
        found = find_python(Workspace(path="/"), pytest=True)
    except GraderError:
        return _Finding(
            name="pytest", ok=False, detail="not found", cost=cost, fix="pip install pytest"
        )
    return _Finding(name="pytest", ok=True, detail=f"of {found.path}")


def _program(name: str, arguments: tuple[str, ...], cost: str, fix: str) -> _Finding:
    path = shutil.which(name)
    if path is None:
        return _Finding(name=name, ok=False, detail="not found", cost=cost, fix=fix)
    try:
        shown = subprocess.run(
            [path, *arguments], capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return _Finding(name=name, ok=False, detail=f"{path}: {error}", cost=cost, fix=fix)
    lines = (shown.stdout or shown.stderr).strip().splitlines()
    return _Finding(name=name, ok=True, detail=f"{lines[0] if lines else '?'} ({path})")


def _images() -> _Finding:
    from assay.errors import AssayError
    from assay.eval.workspaces.images import find_engine, prove

    cost = "cases with a container cannot run"
    try:
        detail = prove(find_engine())
    except (AssayError, OSError) as error:
        said = error.message if isinstance(error, AssayError) else str(error)
        fix = error.hint if isinstance(error, AssayError) else ""
        return _Finding(name="container images", ok=False, detail=said, cost=cost, fix=fix)
    return _Finding(name="container images", ok=True, detail=detail)


def _extras() -> list[_Finding]:
    findings: list[_Finding] = []
    for extra, package, feature in _EXTRAS:
        try:
            detail, there = f"{package} {metadata.version(package)}", True
        except metadata.PackageNotFoundError:
            detail, there = "not installed", False
        findings.append(
            _Finding(
                name=f"extra {extra}",
                ok=there,
                detail=detail,
                cost=feature,
                fix=f"pip install 'assay[{extra}]'",
            )
        )
    return findings


def _web_page() -> _Finding:
    from importlib import resources

    place = resources.files("assay.server").joinpath("page")
    files = list(place.joinpath("assets").iterdir()) if place.joinpath("assets").is_dir() else []
    return _Finding(
        name="web page",
        ok=bool(files) and place.joinpath("index.html").is_file(),
        detail=f"{len(files)} files" if files else "its built files are missing",
        cost="assay view and assay serve answer programs, and show no page",
        fix="in a checkout: make web; otherwise install assay again",
    )


def _models() -> _Finding:
    from assay.errors import AssayError
    from assay.models import ModelSettings, unconfigured

    fix = "set ANTHROPIC_API_KEY, OPENAI_API_KEY or a base URL; `assay fake --judge` needs none"
    try:
        settings = ModelSettings.from_environment()
        asked = {"anthropic": "anthropic:any", "openai": "openai:any", "google": "google:any"}
        named = [name for name, model in asked.items() if not unconfigured(model, settings)]
    except AssayError as error:
        return _Finding(name="models", ok=False, detail=str(error), fix="correct the settings")
    listed = ", ".join([*named, *settings.endpoints]) or "no model can be asked"
    cost = "judges are errors unless their model is a URL; model_judge is skipped, see --strict"
    found = bool(named or settings.endpoints)
    return _Finding(name="models", ok=found, detail=listed, cost=cost, fix=fix)


def _harnesses() -> _Finding:
    from assay.agents.presets import PRESETS, preset
    from assay.errors import InputError

    found: list[str] = []
    for name in PRESETS:
        try:
            preset(name).find(str(Path.cwd()))
        except InputError:
            continue
        found.append(name)
    return _Finding(
        name="agents",
        ok=bool(found),
        detail=", ".join(found) or "none of those that need no declaration is installed",
        cost=f"cases whose matrix names {', '.join(PRESETS)} cannot run",
        fix="assay doctor agents says how each is installed",
    )


def _state() -> _Finding:
    from assay.cli.options import state_home
    from assay.errors import StoreError
    from assay.store.runs import Store

    home = state_home()
    try:
        with Store.open(home):
            return _Finding(name="state", ok=True, detail=home, needed=True)
    except StoreError as error:
        return _Finding(name="state", ok=False, detail=str(error), needed=True)
