"""Command-line harnesses: the agents that ``harnesses.yaml`` declares."""

from __future__ import annotations

import os
import string
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias, cast

from assay.errors import nearest
from assay.tasks.checks import positive, refuse
from assay.tasks.document import problems_to_error, read_document
from assay.types import codec
from assay.types.codec import Problem

HARNESSES_FILE = "harnesses.yaml"
"""Name of the file, beside the cases or above them."""

PLACEHOLDERS = ("prompt", "model", "workspace", "sandbox", "artifacts_dir", "mcp")
"""What an argument may name in braces; ``sandbox`` is the older name of ``workspace``."""

TraceFormat: TypeAlias = Literal["claude-code", "openai-chat", "atif", "auto"]
"""What a harness may print instead of its answer; ``auto`` is recognised by content."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HarnessSpec:
    """An agent that is a command.

    Attributes:
        argv: Program and arguments, in which {prompt}, {model} and {workspace} are filled in, and
            {sandbox}, {artifacts_dir} and {mcp} for older files; a brace itself is written twice.
        timeout_s: Seconds that it may work.
        env: Variables it is started with.
        mounts: Directories of this machine that it may read, such as where it is installed.
        trace: What its standard output is a transcript in; by default its output is its answer,
            and nothing is known of its work. A file that it writes is not a trace: the agent can
            write files too.
    """

    argv: tuple[str, ...]
    timeout_s: float = 1800.0
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    mounts: tuple[str, ...] = ()
    trace: TraceFormat | None = None

    def __post_init__(self) -> None:
        problems = positive("timeout_s", self.timeout_s)
        if not self.argv or not self.argv[0].strip():
            problems.append(Problem(("argv",), "argv names no program"))
        for number, argument in enumerate(self.argv):
            problems += _placeholder_problems(argument, ("argv", number))
        for number, mount in enumerate(self.mounts):
            if not Path(mount).is_absolute():
                message = f"{mount!r} is not an absolute path"
                problems.append(Problem(("mounts", number), message))
        refuse(problems)

    def command(self, *, prompt: str, model: str, workspace: str) -> list[str]:
        """The command line, every place in it filled in once.

        Nothing in a prompt is taken for a place, because only the template is looked through.
        """
        values: dict[str, str] = dict.fromkeys(PLACEHOLDERS, workspace)
        values |= {"prompt": prompt, "model": model, "mcp": ""}
        return [argument.format_map(values) for argument in self.argv]


def load_harnesses(file: str) -> dict[str, HarnessSpec]:
    """Read a ``harnesses.yaml``: a mapping from name to harness."""
    problems: list[Problem] = []
    document = read_document(file, problems)
    declared = {} if document.data is None else document.data  # a file of comments declares none
    harnesses = codec.read(dict[str, HarnessSpec], declared, (), problems)
    if problems:
        raise problems_to_error(problems, document)
    return cast("dict[str, HarnessSpec]", harnesses)


def find_harnesses_file(root: str, given: str) -> str:
    """Find the harnesses of a case.

    It is looked for in the case's directory and then upwards: as far as the parent of the path
    that the user gave, or of the directory ``evals`` that the case is in.
    """
    here = Path(root)
    start = Path(os.path.abspath(given))  # noqa: PTH100 - a link that was given stays as it is
    stop = start.parent
    if here.parent.name == "evals" and stop.is_relative_to(here.parent):
        stop = here.parent.parent
    for folder in (here, *here.parents):
        if (folder / HARNESSES_FILE).is_file():
            return str(folder / HARNESSES_FILE)
        if folder == stop or not folder.is_relative_to(stop):
            break
    return ""


def _placeholder_problems(argument: str, place: codec.Path) -> list[Problem]:
    try:
        fields = [part[1:] for part in string.Formatter().parse(argument) if part[1] is not None]
    except ValueError as error:
        return [Problem(place, f"{argument!r}: {error}", "write a brace twice to keep it")]
    problems: list[Problem] = []
    for name, form, conversion in fields:
        if name not in PLACEHOLDERS:
            hint = nearest(str(name), list(PLACEHOLDERS))
            problems.append(Problem(place, f"{{{name}}} stands for nothing", hint))
        elif form or conversion:
            problems.append(Problem(place, f"{{{name}}} takes no format"))
    return problems
