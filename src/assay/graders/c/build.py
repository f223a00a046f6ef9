"""Find the files of a C case, write what stands between judge and submission, and compile both."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, TypeAlias

from assay.errors import GraderError, InputError
from assay.graders.c.declarations import (
    Declarations,
    functions_of_tests,
    identifiers,
    read_declarations,
)
from assay.graders.c.generate import (
    CannotCarryError,
    Carried,
    Carrier,
    handlers,
    one_of_many,
    stand_ins,
)
from assay.graders.paths import CasePath
from assay.graders.testing.hidden import Injected, source_text
from assay.graders.tree import regular_files
from assay.sandbox import CommandResult, Limits, Mount, run_command
from assay.types.codec import Filled, Seconds, Share
from assay.types.submission import Workspace

Globs: TypeAlias = Annotated[list[str], Filled("name at least one file")]

INSIDE = Path(__file__).with_name("inside")
"""The C that both sides are built with."""

_PARSED = [
    *("-D__attribute__(x)=", "-D__extension__=", "-D__restrict=", "-D__asm__(x)="),
    *("-D__inline=inline", "-D__inline__=inline"),
]
"""What the grammar does not know, for the reading of headers alone."""
_GENERATED = ("-std=gnu17", "-w", "-I/assay/inside")
_BUILD_SECONDS = 120.0


@dataclass(frozen=True, kw_only=True)
class CTests:
    """What a case says of its tests; the globs are those of `fnmatch`."""

    headers: Globs
    sources: Globs
    tests: list[str] | None = None
    inject: list[CasePath | Injected] | None = None
    flags: list[str] | None = None
    buffers: dict[str, dict[str, str | int]] | None = None
    handles: list[str] | None = None
    pass_threshold: Share = 1.0
    timeout_s: Seconds = 300.0
    test_timeout_s: Seconds = 60.0


@dataclass(frozen=True, slots=True)
class BuildJob:
    """One test: its id, the number of its program, and the function (none: the whole program)."""

    id: str
    program: int
    function: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """The author's files, by path in the workspace."""

    tree: Workspace
    headers: Mapping[str, str]
    tests: Mapping[str, str]

    @property
    def jobs(self) -> list[BuildJob]:
        """Every test, in the order in which they are run."""
        found: list[BuildJob] = []
        for number, (name, text) in enumerate(self.tests.items()):
            functions, is_program = functions_of_tests(text)
            if is_program:
                found.append(BuildJob(name, number))
            else:
                found += [BuildJob(f"{name}::{one}", number, one) for one in functions]
        return found


def find_sources(command: CTests, tree: Workspace, hidden: Mapping[str, str]) -> Sources:
    """Find the headers and the tests in the pristine tree and among the hidden files."""
    top = Path(tree.path)
    places = {str(path): str(top / path) for path in regular_files(top)} | {**hidden}
    headers = {name: places[name] for name in _matching(places, command.headers)}
    if not headers:
        raise InputError(f"headers: nothing in the source is {' or '.join(command.headers)}")
    wanted = command.tests or [name for name in hidden if name.endswith(".c")]
    tests = {name: source_text(places[name]) for name in _matching(places, wanted)}
    if not tests:
        raise InputError("tests: no file of tests was found", hint="name them, or inject them")
    sources = Sources(tree=tree, headers=headers, tests=tests)
    silent = set(tests) - {job.id.partition("::")[0] for job in sources.jobs}
    if silent:
        raise InputError(
            f"{min(silent)} has neither main nor a function 'void test_x(void)'",
            hint="assay runs a file with main as one test, else each such function as one",
        )
    return sources


async def build_judge(
    command: CTests, sources: Sources, layer: str, build: Path
) -> tuple[str, ...]:
    """Build everything that is the author's or ours: no byte of the submission is there."""
    headers = [f"/workspace/{name}" for name in sources.headers]
    (build / "all.c").write_text("".join(f'#include "{name}"\n' for name in headers))
    flags = _flags(command, sources)
    argv = ["cc", "-E", *_PARSED, "/assay/build/all.c", *flags]
    read = await _compile(argv, sources.tree, layer, build, output_bytes=32 << 20)
    declared = read_declarations(read.stdout, lambda name: name.startswith("/workspace/"))
    carried, notes = _carry(command, declared, sources)
    (build / "stand_ins.c").write_text(stand_ins(carried, headers))
    (build / "handlers.c").write_text(handlers(carried, headers))
    lines = ["set -e", "cd /workspace"]
    inside = {name: f"/assay/inside/{name}.c" for name in ("wire", "judge", "host", "runner")}
    generated = [*flags, *_GENERATED]
    ours = "/assay/build"
    lines += [
        _cc("runner", [inside["runner"]], generated),
        _cc("host", [inside["host"], inside["wire"], f"{ours}/handlers.c"], [*generated, "-ldl"]),
        *(
            shlex.join(["cc", "-c", "-o", f"{ours}/{name}.o", source, *generated])
            for name, source in (
                *((name, inside[name]) for name in ("judge", "wire")),
                ("stand_ins", f"{ours}/stand_ins.c"),
            )
        ),
    ]
    linked = [f"{ours}/{name}.o" for name in ("judge", "wire", "stand_ins")]
    for number, (name, text) in enumerate(sources.tests.items()):
        functions, is_program = functions_of_tests(text)
        program = f"./{name}"
        if not is_program:
            program = f"{ours}/main{number}.c"
            (build / f"main{number}.c").write_text(one_of_many(f"/workspace/{name}", functions))
        lines.append(_cc(f"t{number}", [program, *linked], [*flags, "-UNDEBUG", "-pthread"]))
    await _compile(["/bin/sh", "-c", "\n".join(lines)], sources.tree, layer, build)
    return notes


async def build_submission(
    command: CTests,
    sources: Sources,
    workspace: Workspace,
    layer: str,
    *,
    into: Path,
    seconds: float,
) -> CommandResult | None:
    """Compile the submission into ``library.so``, against the author's headers."""
    tree = [str(path) for path in regular_files(Path(workspace.path))]
    own = [
        name
        for name in _matching(tree, command.sources)
        if name.endswith(".c") and name not in sources.tests
    ]
    if not own:
        return None
    argv = ["cc", "-shared", "-fPIC", "-Wl,-Bsymbolic", "-o", "/assay/lib/library.so"]
    argv += [f"./{name}" for name in own] + [*_flags(command, sources), "-fvisibility=default"]
    return await run_command(
        argv,
        workspace=workspace,
        layers=(layer,),
        mounts=[Mount(source=str(into), target="/assay/lib", writable=True)],
        limits=Limits(wall_seconds=seconds),
    )


def _carry(
    command: CTests, declared: Declarations, sources: Sources
) -> tuple[list[Carried], tuple[str, ...]]:
    """How each declared function is carried; one that no test names need not be."""
    buffers = command.buffers or {}
    carrier = Carrier(declared, buffers, command.handles or ())
    unknown = set(buffers) - set(declared.functions)
    if unknown:
        raise InputError(f"buffers: no header declares a function {min(unknown)!r}")
    named = frozenset[str]().union(*map(identifiers, sources.tests.values()))
    carried: list[Carried] = []
    notes: list[str] = []
    for name, function in declared.functions.items():
        try:
            carried.append(carrier.carried(function))
        except CannotCarryError as error:
            if name in named:
                raise InputError(
                    f"{name}() cannot be called from another process: {error}",
                    hint="or grade by a command, whose assurance is 'status'",
                ) from None
            notes.append(f"{name}() cannot be called from tests: {error}")
    variables = sorted(declared.variables & named)
    if variables:
        raise InputError(
            f"the variable {variables[0]!r} is the submission's and cannot be read by a test",
            hint="declare a function that returns it",
        )
    return carried, tuple(notes)


async def _compile(
    argv: Sequence[str], tree: Workspace, layer: str, build: Path, *, output_bytes: int = 64 * 1024
) -> CommandResult:
    result = await run_command(
        argv,
        workspace=tree,
        layers=(layer,),
        mounts=[
            Mount(source=str(INSIDE), target="/assay/inside"),
            Mount(source=str(build), target="/assay/build", writable=True),
        ],
        limits=Limits(wall_seconds=_BUILD_SECONDS, output_bytes=output_bytes),
    )
    if result.exit_code == 127:
        raise GraderError("there is no C compiler 'cc'", hint="install gcc or clang")
    if result.exit_code != 0:
        raise GraderError(
            f"the author's tests do not compile: {result.stderr.strip()[-2_000:]}",
            hint="what they call must be declared in the headers of the case",
        )
    return result


def _cc(program: str, parts: Sequence[str], flags: Sequence[str]) -> str:
    return shlex.join(["cc", "-o", f"/assay/build/{program}", *parts, *flags])


def _flags(command: CTests, sources: Sources) -> list[str]:
    places = dict.fromkeys(str(Path("/workspace", name).parent) for name in sources.headers)
    return [*(command.flags or ()), "-I/workspace", *(f"-I{place}" for place in places)]


def _matching(names: Mapping[str, str] | Sequence[str], globs: Sequence[str]) -> list[str]:
    return sorted(
        n for n in names if any(fnmatchcase(n, glob.removeprefix("./")) for glob in globs)
    )
