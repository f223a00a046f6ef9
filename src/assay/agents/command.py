"""The harness ``command``: any program, run in the agent's sandbox.

What it prints is its answer or, where its declaration says so, a transcript of its work. Only its
standard output is ever read as one: it comes from the program, which a model cannot make print an
event, whatever it says or writes to a file.
"""

from __future__ import annotations

import asyncio
import os
import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from assay.agents.transcripts import MOST_BYTES
from assay.errors import AgentError, AgentTimeoutError, InputError
from assay.frozen import frozen
from assay.gateway import Gateway
from assay.gateway.door import MCP
from assay.gateway.journal import REDACTED
from assay.gateway.offered import SERVER
from assay.graders.shell_flow import simple_commands
from assay.graders.usage import INCOMPLETE, OBSERVED, USAGE, RunUsage, untold_part
from assay.models.reference import parse_reference
from assay.sandbox import CommandResult, Door, Limits, Mount, open_command, run_command
from assay.tasks.blocks import SUITE, HarnessSpec
from assay.tasks.interaction import Interaction
from assay.types.run import Run
from assay.types.submission import Workspace
from assay.types.trace import AgentStep, Step

if TYPE_CHECKING:
    from assay.agents.transcripts import Transcript

_WORKSPACE = "/workspace"
_PORT = 4143
"""Where an agent in a network of its own finds its gateway."""

_LONGEST_LINE = 8 << 20
_MODEL = "ASSAY_MODEL"
"""Variable that names the model, for an agent whose configuration wants it."""
_FIND = """command -v -- "$1" >/dev/null || exit 1
[ -z "$2" ] || [ -e "$2" ] || command -v -- "$2" >/dev/null || exit 2"""
_READERS = re.compile(r"(?:ba|da|z|k)?sh|python[\d.]*|pypy[\d.]*|node|ruby|perl|php")
"""Programs whose first argument is the file that they run."""

_SHELLS = re.compile(r"(?:ba|da|z|k)?sh")
_SHELL_FLAGS, _LINE_FLAG = re.compile(r"-[efluvx]+"), re.compile(r"-[eflux]*c")
_PYTHON_FLAGS = re.compile(r"-[BEIOSsuq]+")
_SAYS = "{prompt}"
_PLAIN = re.compile(r"[\w./@+-]+")


@frozen(kw_only=True)
class CommandAgent:
    """Runs a command in the workspace; what it prints is its answer, or a transcript.

    Attributes:
        spec: The command, its variables and its limits.
        network: Whether it may reach the network.
        root: Directory that relative mounts are meant from: where the harness was declared.
        turns: Further messages, each for when it has ended well what it was told before.
        interaction: Who answers its requests for permission, where it makes any.
        name: The harness's name.
    """

    spec: HarnessSpec
    network: bool = False
    root: str = ""
    turns: tuple[str, ...] = ()
    interaction: Interaction | None = None
    name: str = "command"

    async def __call__(self, run: Run) -> None:
        """Do the work.

        Raises:
            AgentError: If the command cannot be started, a variable that it needs is not set or
                there is no workspace; if what it prints is not the transcript that is declared, or
                says that its model never answered.
            AgentTimeoutError: If it worked longer than it may; its output so far is kept.
        """
        if run.workspace is None:
            raise AgentError(f"harness {self.name!r} needs a task with a workspace")
        workspace = run.workspace
        gateway = self._gateway(run)
        address = "" if gateway is None else self._address(gateway)
        lines = self.spec.commands(
            [run.prompt_text, *self.turns],
            model=run.model,
            model_name=_name_of(run.model),
            workspace=_WORKSPACE,
            gateway=address,
        )
        mounts = [
            Mount(source=str(Path(self.root, path)), target=str(PurePosixPath(SUITE, path)))
            for path in self.spec.mounts
        ]
        own: dict[str, str] = {}
        if gateway is not None:
            own = {**gateway.environment(address), _MODEL: _name_of(run.model)}
        if run.told is not None and run.trace_id:  # what it exports itself is part of the same
            from assay.agents.transcripts.telling import root_id

            own["TRACEPARENT"] = f"00-{run.trace_id}-{root_id(run.trace_id)}-01"
        env = {**workspace.env, **own, **self.spec.env, **self._passed()}
        if run.tools and gateway is not None:
            env |= self.spec.tools_env
        workspace = replace(workspace, env=env)
        await self._require_program(lines[0], workspace, mounts)
        door = None
        if gateway is not None and not self.network:
            door = Door(port=_PORT, on_open=gateway.admit())
        if self.spec.acp:
            result = await self._converse(lines[0], run, workspace, mounts, door, address=address)
        else:
            result = await run_command(
                lines[0] if len(lines) == 1 else _one_after_the_other(lines),
                workspace=workspace,
                changes="keep",
                mounts=mounts,
                network=self.network,
                door=door,
                limits=self._limits(),
            )
        if gateway is not None:  # also for what an error quotes
            result = replace(
                result,
                stdout=result.stdout.replace(gateway.token, REDACTED),
                stderr=result.stderr.replace(gateway.token, REDACTED),
            )
        run.trace.extra["exit_code"] = result.exit_code
        run.trace.extra["stderr"] = result.stderr[-4000:]
        if self.spec.trace == "gateway":
            self._require_asked(run, result)
            _record_ending(result, run)
        elif self.spec.trace is not None:
            await self._record_transcript(result, run)
        elif not self.spec.acp:  # which has told its work while it was at it
            _record_answer(result, run)
        if result.status == "timed_out":
            raise AgentTimeoutError(
                f"harness {self.name!r} worked longer than {self.spec.timeout_s:g} s"
            )

    def _gateway(self, run: Run) -> Gateway | None:
        """The gateway of its cell, if it is to ask its model through that."""
        if not self.spec.gateway:
            return None
        if not isinstance(run.gateway, Gateway):
            raise AgentError(
                f"harness {self.name!r} asks its model through a gateway, and this run has none",
                hint="name the model that is to be asked",
            )
        run.gateway.check()
        run.gateway.is_lent = True
        return run.gateway

    def _address(self, gateway: Gateway) -> str:
        """Where it finds its gateway: in its own network, or on the host's loopback."""
        return gateway.anthropic_url if self.network else f"http://127.0.0.1:{_PORT}"

    def _passed(self) -> dict[str, str]:
        """What it is given of assay's own environment."""
        missing = [name for name in self.spec.pass_env if not os.environ.get(name)]
        if missing:
            raise AgentError(
                f"harness {self.name!r} is to be given variables that are not set: "
                + ", ".join(missing),
                hint=f"export {missing[0]}=...",
            )
        return {name: os.environ[name] for name in self.spec.pass_env}

    def _limits(self) -> Limits:
        if self.spec.trace is None:
            return Limits(wall_seconds=self.spec.timeout_s)
        # A transcript is kept whole: what is cut out of the middle could hold any call.
        return Limits(
            wall_seconds=self.spec.timeout_s, output_bytes=MOST_BYTES, output_kill_bytes=MOST_BYTES
        )

    async def _converse(
        self,
        argv: Sequence[str],
        run: Run,
        workspace: Workspace,
        mounts: Sequence[Mount],
        door: Door | None,
        *,
        address: str,
    ) -> CommandResult:
        from assay.agents.acp import Conversed, converse, require_package

        require_package()
        failed, servers = "", dict[str, tuple[str, str]]()
        if run.tools and isinstance(run.gateway, Gateway) and address:
            servers[SERVER] = address + MCP, run.gateway.token
        async with open_command(
            argv,
            workspace=workspace,
            changes="keep",
            mounts=mounts,
            network=self.network,
            door=door,
            limits=self._limits(),
            line_bytes=_LONGEST_LINE,
        ) as opened:
            prompts = [run.prompt_text, *self.turns]
            try:
                found = await converse(
                    opened, prompts, cwd=_WORKSPACE, policy=self.interaction, servers=servers
                )
            except Conversed as ended:
                found, failed = ended.transcript, ended.reason
            stderr = opened.stderr
        result = replace(await opened.wait(), stderr=stderr)
        self._take(found, run)
        if failed:
            run.record(Step(source="system", error=f"the agent ended: {failed}"))
            if not _is_seen(run) and result.status != "timed_out":
                raise AgentError(f"harness {self.name!r}: {failed}: {stderr.strip()[-300:]}")
        return result

    def _require_asked(self, run: Run, result: CommandResult) -> None:
        """An agent whose model never had its turn has failed on its own: that is nobody's work."""
        gateway = run.gateway
        asked = isinstance(gateway, Gateway) and (gateway.spent.calls or gateway.stop)
        if not asked and result.status == "exited":
            said = (result.stderr.strip() or result.stdout.strip()).rpartition("\n")[2][-300:]
            raise AgentError(f"harness {self.name!r} never asked its model: {said}")

    def _take(self, found: Transcript, run: Run) -> None:
        """Take what the agent tells of its work."""
        run.trace.steps.extend(found.trace.steps)
        run.trace.content = found.trace.content or (None if untold_part(found.trace) else "")
        run.trace.stop_reason, run.trace.status = found.trace.stop_reason, found.trace.status
        run.trace.extra |= found.trace.extra
        run.tokens, run.cost_usd = found.totals.tokens, found.totals.cost_usd

    async def _record_transcript(self, result: CommandResult, run: Run) -> None:
        from assay.agents.transcripts import read_transcript

        assert self.spec.trace is not None
        ending = _ending(result)
        try:
            found = await asyncio.to_thread(read_transcript, result.stdout, self.spec.trace)
        except InputError as error:
            killed = result.status != "exited" or (result.exit_code or 0) < 0
            if not killed and not _is_seen(run):
                what = error if result.stdout.strip() else "it printed nothing"
                raise AgentError(
                    f"harness {self.name!r}: {what}{f'; {ending}' if ending else ''}",
                    hint="its standard output must have the format that `trace` declares"
                    + self._offline(),
                ) from error
            # Whoever kills its own recorder shows nothing, and that counts against it.
            run.trace.content = ""
            run.trace.extra |= {INCOMPLETE: f"no transcript: {ending}", USAGE: RunUsage().to_dict()}
            run.record(Step(source="system", error=ending))
            return
        self._take(found, run)
        run.trace.extra[USAGE] = replace(found.totals, seconds=result.seconds).to_dict()
        if ending:
            run.record(Step(source="system", error=ending))
        if found.failure and not _is_seen(run):  # what passed a gateway is not talked away
            raise AgentError(
                f"harness {self.name!r}: its model never answered: {found.failure}",
                hint="check the key and the network that the harness needs" + self._offline(),
            )

    def _offline(self) -> str:
        """What keeps an agent from its model unseen, where that is how the case is."""
        return "" if self.network else "; its case gives it no network: `limits: {network: true}`"

    async def _require_program(
        self, argv: Sequence[str], workspace: Workspace, mounts: Sequence[Mount]
    ) -> None:
        """Make sure that the program, and the script it is to run, are there before it starts.

        Its exit status could not tell: an agent may end with the shell's "not found" itself.
        """
        started = _started(argv, self.spec.argv)
        found = await run_command(
            [started.shell, "-c", _FIND, "sh", started.program, started.script],
            workspace=workspace,
            mounts=mounts,
        )
        if found.exit_code != 0:
            program = started.program if found.exit_code == 1 else argv[0]
            missing = f"program {program!r}"
            if found.exit_code == 2 and started.script:
                missing = f"file {started.script!r}"
            raise AgentError(
                f"harness {self.name!r}: no {missing} in the sandbox",
                hint=f"it must be {'in the image' if workspace.image else 'under /usr'}, in the "
                "workspace, or under `mounts`",
            )


@frozen
class _Started:
    """What a command line starts.

    Attributes:
        shell: The shell that reads it, which knows its own words.
        program: The program that it starts first.
        script: The file that this is to run, if that is said.
    """

    program: str
    script: str = ""
    shell: str = "/bin/sh"


def _started(argv: Sequence[str], declared: Sequence[str]) -> _Started:
    """Read a command line, and of a shell's line what it starts first.

    What a prompt is filled into says nothing, and after an option that is not known to stand for
    itself nothing is guessed.
    """
    program = argv[0]
    name = program.rpartition("/")[2]
    rest = [word for word, template in zip(argv, declared, strict=True) if _SAYS not in template]
    if len(rest) < len(argv):
        rest = rest[: next(n for n, template in enumerate(declared) if _SAYS in template)]
    words = rest[1:]
    flags = _SHELL_FLAGS if _SHELLS.fullmatch(name) else _PYTHON_FLAGS
    while words and flags.fullmatch(words[0]):
        words.pop(0)
    if not words or not _READERS.fullmatch(name):
        return _Started(program)
    if not words[0].startswith("-"):
        return _Started(program, words[0])
    if not (_SHELLS.fullmatch(name) and _LINE_FLAG.fullmatch(words[0]) and len(words) > 1):
        return _Started(program)
    first = next(simple_commands(words[1]), None)
    inner = first.words if first is not None else []
    if not inner or not all(map(_PLAIN.fullmatch, inner[:2])):
        return _Started(program)
    started = _started(inner, inner)
    return _Started(started.program, started.script, shell=program)


def _is_seen(run: Run) -> bool:
    """Whether a gateway has seen the work, whatever is told of it."""
    return isinstance(run.gateway, Gateway) and run.gateway.spent.calls > 0


def _record_answer(result: CommandResult, run: Run) -> None:
    run.record(
        AgentStep(content=result.stdout, done=True, model=run.model or None, error=_ending(result))
    )
    run.trace.content = result.stdout.strip()
    run.trace.extra[OBSERVED] = False


def _record_ending(result: CommandResult, run: Run) -> None:
    """Leave it to the gateway to tell what was done, and what was said in the end."""
    if ending := _ending(result):
        run.record(Step(source="system", error=ending))
    run.trace.extra["stdout"] = result.stdout[-4000:]
    run.trace.extra[OBSERVED] = False


def _one_after_the_other(lines: Sequence[Sequence[str]]) -> list[str]:
    """One command of several, so that what each leaves outside of the workspace is there still."""
    return ["/bin/sh", "-c", " && ".join(map(shlex.join, lines))]


def _name_of(model: str) -> str:
    """What its provider calls a model."""
    try:
        return parse_reference(model).name
    except InputError:
        return model


def _ending(result: CommandResult) -> str | None:
    """How the command ended, if not well: shown with the cell, and no reason not to grade it."""
    if result.status == "exited" and result.exit_code == 0:
        return None
    ended = {"timed_out": "ran out of time", "output_limit": "wrote too much output"}
    how = ended.get(result.status, f"ended with exit status {result.exit_code}")
    # What went wrong stands in the last line, also of a traceback.
    said = result.stderr.strip().rpartition("\n")[2][-300:]
    return f"the agent {how}: {said}" if said else f"the agent {how}"
