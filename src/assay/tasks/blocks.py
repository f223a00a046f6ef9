"""The blocks of a case: what a YAML case may say, field by field.

Each block checks its own rules when it is made, and reports every broken one at once.
"""

from __future__ import annotations

import os
import re
import string
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from itertools import chain, repeat
from pathlib import Path
from typing import Literal, TypeAlias, cast

from assay.documents import problems_to_error, read_document
from assay.errors import nearest
from assay.frozen import frozen
from assay.scoring.results import Assurance
from assay.tasks.interaction import Interaction
from assay.tasks.rules import Ruled, inside_problem, mount_problems, positive, texts
from assay.types import codec
from assay.types.codec import Problem


@frozen(kw_only=True)
class SimulatedUser(Ruled):
    """A user whom a model plays, until they have what they want.

    Attributes:
        persona: Who they are, what they want, and what they know that the agent does not.
        model: The model that plays them; by default the agent's own.
        most_turns: Messages of theirs after the prompt, at most; at least 1.
    """

    persona: str
    model: str = ""
    most_turns: int = 10

    def _problems(self) -> Iterator[Problem]:
        if not self.persona.strip():
            yield Problem(("persona",), "the persona is empty", "say who they are")
        if self.most_turns < 1:
            yield Problem(("most_turns",), f"must be at least 1, got {self.most_turns}")


@frozen(kw_only=True)
class CaseTask(Ruled):
    """What the agent is asked.

    Attributes:
        prompt: The first message to the agent.
        system_prompt: Standing instructions, for harnesses that take them.
        instruction_files: Files of the case whose text is added to the prompt.
        turns: Further messages, each sent when the agent has stopped.
        user: Who answers the agent after these.
    """

    prompt: str
    system_prompt: str | None = None
    instruction_files: tuple[str, ...] = ()
    turns: tuple[str, ...] = ()
    user: SimulatedUser | None = None

    def _problems(self) -> Iterator[Problem]:
        yield from texts("turns", self.turns)
        if not self.prompt.strip():
            yield Problem(("prompt",), "the prompt is empty", "say what to do")


@frozen(kw_only=True)
class Artifacts:
    """What is put at the agent's disposal, for harnesses that know of such things.

    Attributes:
        skills: Directories or files of skills.
        commands: Files of commands.
        plugins: Directories of plugins.
        mcp: File that configures MCP servers.
    """

    skills: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    mcp: str | None = None


@frozen(kw_only=True)
class MatrixEntry(Ruled):
    """One harness and the models it is run with.

    Attributes:
        harness: What does the work.
        models: Models it is asked to use; at least one.
    """

    harness: str
    models: tuple[str, ...]

    def _problems(self) -> Iterator[Problem]:
        yield from texts("models", self.models, required=True, unique=True)
        if not self.harness.strip():
            yield Problem(("harness",), "the harness has no name")


@frozen(kw_only=True)
class Matrix(Ruled):
    """Which harnesses and models work on the case, and how often.

    Attributes:
        harnesses: Each is run with each of the models.
        models: Each is used by each of the harnesses.
        entries: Instead of harnesses and models, the pairs one by one.
        trials: Repeats of each pair; at least 1.
    """

    harnesses: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    entries: tuple[MatrixEntry, ...] = ()
    trials: int = 1

    def _problems(self) -> Iterator[Problem]:
        if self.entries and (self.harnesses or self.models):
            yield Problem((), "a matrix has either entries or harnesses and models, not both")
        elif not self.entries:
            if not (self.harnesses or self.models):
                yield Problem((), "the matrix is empty", "give harnesses and models, or entries")
            else:
                yield from texts("harnesses", self.harnesses, required=True, unique=True)
                yield from texts("models", self.models, required=True, unique=True)
        if self.trials < 1:
            yield Problem(("trials",), f"must be at least 1, got {self.trials}")
        seen: set[tuple[str, str]] = set()
        for number, entry in enumerate(self.entries):
            for index, model in enumerate(entry.models):
                if (entry.harness, model) in seen:
                    message = f"{entry.harness} with {model} is already in the matrix"
                    place = ("entries", number, "models", index)
                    yield Problem(place, message, "use trials")
                seen.add((entry.harness, model))

    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Every (harness, model), in the order in which they are written."""
        if self.entries:
            return tuple((e.harness, model) for e in self.entries for model in e.models)
        return tuple((harness, model) for harness in self.harnesses for model in self.models)


NO_MATRIX = Matrix(harnesses=("agent",), models=("(none)",))
"""That of a case which has none: whoever runs it says with which model."""


@frozen(kw_only=True)
class EnvironmentSpec(Ruled):
    """What is installed before the agent starts and for the graders.

    Attributes:
        kind: pip-venv and uv make a virtual environment; command runs commands only. Not needed
            beside a container, which brings what is installed.
        container: The image that everything runs in; more can be said in a block `container`.
        venv: Whether a virtual environment is made.
        system_site_packages: Whether it sees the packages of the interpreter it is made from.
        requirements: Requirements to install.
        requirement_files: Files of the case with requirements to install.
        install: editable installs the source itself too.
        pip_args: Further arguments for the installer.
        commands: Commands to run in the workspace.
        env: Variables for all of this, for the agent and for the graders.
        timeout_s: Seconds that one command may take.
    """

    kind: Literal["pip-venv", "uv", "command"] | None = None
    container: str | None = None
    venv: bool = True
    system_site_packages: bool = False
    requirements: tuple[str, ...] = ()
    requirement_files: tuple[str, ...] = ()
    install: Literal["none", "editable"] = "none"
    pip_args: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    timeout_s: float = 900.0

    def _problems(self) -> Iterator[Problem]:
        yield from texts("commands", self.commands)
        if self.kind is None and self.container is None:
            yield Problem(("kind",), "'kind' is required", at_key=True)
        if self.container is not None and not self.container.strip():
            yield Problem(("container",), "the image has no name")
        if self.kind in (None, "command"):
            if not self.commands and self.container is None:
                yield Problem(("commands",), "kind command needs commands", "say what to run")
            what, hint = "kind command", "use pip-venv or uv"
            if self.container is not None:
                what, hint = "a container", "install in the image: container: {setup: [...]}"
            installing = {
                "requirements": bool(self.requirements),
                "requirement_files": bool(self.requirement_files),
                "install": self.install != "none",
                "pip_args": bool(self.pip_args),
            }
            for name, given in installing.items():
                if given:
                    yield Problem((name,), f"{what} takes no {name}", hint, at_key=True)
        for name in self.env:
            if not _VARIABLE.fullmatch(name):
                yield Problem(("env", name), f"{name!r} is not a valid variable name", at_key=True)
        yield from positive("timeout_s", self.timeout_s)


_NO_WORKSPACE = (
    *("bin", "dev", "etc", "lib", "lib64", "proc", "sbin", "suite", "sys", "tmp", "workspace"),
)


@frozen(kw_only=True)
class ContainerSpec(Ruled):
    """The container image whose file system everything runs in.

    Attributes:
        image: Name of the image, best with its digest: name@sha256:...
        setup: Commands that its engine runs in it first, as root and with the network; once.
        python: The Python interpreter in it that tests run in: a name on its PATH, or a path.
        home: The home directory in it; by default that of the image's user.
        caches: For older files. Nothing that a cell writes reaches another one.
        workdir: A path in it that leads to the workspace. Without a source, what the image has
            there is what the agent starts from.
    """

    image: str
    setup: tuple[str, ...] = ()
    python: str = "python3"
    home: str = ""
    caches: tuple[str, ...] = ()
    workdir: str = ""

    def _problems(self) -> Iterator[Problem]:
        yield from texts("setup", self.setup)
        if not self.image.strip() or self.image.startswith("-"):
            yield Problem(("image",), "the image has no name")
        for name, path in (("home", self.home), ("workdir", self.workdir)):
            if path and (not path.startswith("/") or ".." in path.split("/") or "\0" in path):
                yield Problem((name,), f"{path!r} is not a plain absolute path")
        steps = [step for step in self.workdir.split("/") if step]
        is_usual = steps == ["workspace"]
        taken = (
            not steps or "." in steps or steps[0] in _NO_WORKSPACE or steps in (["usr"], ["opt"])
        )
        if self.workdir and taken and not is_usual:
            hint = "for instance /app, or /workspace, where it always is"
            yield Problem(("workdir",), f"the workspace cannot be {self.workdir}", hint)
        for number, cache in enumerate(self.caches):
            yield from inside_problem(cache, ("caches", number))


@frozen(kw_only=True)
class Stub(Ruled):
    """A Python function whose body is taken out, for the agent to write.

    Attributes:
        file: Python file of the source.
        function: Name of the function.
    """

    file: str
    function: str

    def _problems(self) -> Iterator[Problem]:
        yield from inside_problem(self.file, ("file",))
        if not self.function.isidentifier():
            yield Problem(("function",), f"{self.function!r} is not a valid function name")


@frozen(kw_only=True)
class Setup(Ruled):
    """What is done to the source before the agent sees it.

    Attributes:
        stub: Functions whose bodies are taken out.
        run: Shell commands to run in the workspace.
    """

    stub: tuple[Stub, ...] = ()
    run: tuple[str, ...] = ()

    def _problems(self) -> Iterator[Problem]:
        yield from texts("run", self.run)


@frozen(kw_only=True)
class Observe:
    """What is recorded of the agent's work.

    Attributes:
        tracing: Whether the harness must record a trace; an interaction implies it.
        interaction: Who answers an agent that asks for permission; for agents that do (ACP).
    """

    tracing: bool = False
    interaction: Interaction | None = None

    def __post_init__(self) -> None:
        if self.interaction is not None:
            object.__setattr__(self, "tracing", True)


@frozen(kw_only=True)
class OfTrials(Ruled):
    """A rate that is asked of so many trials.

    Attributes:
        k: How many.
        rate: The least, above 0 and at most 1.
    """

    k: int
    rate: float

    def _problems(self) -> Iterator[Problem]:
        if self.k < 1:
            yield Problem(("k",), f"must be at least 1, got {self.k}")
        yield from _rate_problems("rate", self.rate)


def _rate_problems(name: str, rate: float) -> Iterator[Problem]:
    if not 0.0 < rate <= 1.0:
        yield Problem((name,), f"must be above 0 and at most 1, got {rate}")


_ROUNDING = 1e-9
"""By how much less a reward still reaches its threshold."""


@frozen(kw_only=True)
class Expect(Ruled):
    """What counts as passing.

    Attributes:
        pass_threshold: Reward needed to pass, in [0, 1].
        min_assurance: How far its reward must be to be trusted for a cell to pass, such as
            `separate`; none is needed by default.
        min_coverage: Share of the weight, in [0, 1], that must have been graded for a cell to pass;
            1 where nothing may be skipped, gates included. By default what does not apply (a judge
            without a key, a trace that no harness gave) is left out, with a warning.
        pass_rate: Share of an agent's trials that must pass for the run to pass, instead of all.
        pass_at_k: Likewise: the chance that at least one of ``k`` trials passes.
        pass_hat_k: Likewise: the chance that each of ``k`` trials passes.
    """

    pass_threshold: float = 1.0
    min_assurance: Assurance | None = None
    min_coverage: float | None = None
    pass_rate: float | None = None
    pass_at_k: OfTrials | None = None
    pass_hat_k: OfTrials | None = None

    @property
    def rates(self) -> dict[str, float]:
        """The rates that are asked of all trials, by what reports call them."""
        asked: dict[str, float] = {} if self.pass_rate is None else {"pass rate": self.pass_rate}
        if self.pass_at_k is not None:
            asked[f"pass@{self.pass_at_k.k}"] = self.pass_at_k.rate
        if self.pass_hat_k is not None:
            asked[f"pass^{self.pass_hat_k.k}"] = self.pass_hat_k.rate
        return asked

    @property
    def least_trials(self) -> int:
        """How many trials the rates are about."""
        of = (one.k for one in (self.pass_at_k, self.pass_hat_k) if one is not None)
        return max(*of, 2 if self.pass_rate is not None else 1, 1)

    def _problems(self) -> Iterator[Problem]:
        shares = {"pass_threshold": self.pass_threshold, "min_coverage": self.min_coverage}
        for name, share in shares.items():
            if share is not None and not 0.0 <= share <= 1.0:
                yield Problem((name,), f"must be between 0 and 1, got {share}")
        if self.rates and self.pass_threshold <= _ROUNDING:
            message = f"is {self.pass_threshold:g}, so every trial passes and no rate can be missed"
            yield Problem(("pass_threshold",), message, "say which reward a trial needs to pass")
        if self.pass_rate is not None:
            yield from _rate_problems("pass_rate", self.pass_rate)


@frozen(kw_only=True)
class CellLimits(Ruled):
    """What a cell may use.

    Attributes:
        agent_timeout_s: Seconds that the agent may work; what it has done by then is graded.
        grading_timeout_s: Seconds that grading may take on top of the graders' own timeouts;
            longer is an error, not a 0.
        network: Whether the agent may use the network. Graders never may.
        model_calls: Requests to its model that an agent is answered; this and the following for
            agents that ask it through the cell's gateway, and not limited by default.
        model_tokens: Tokens that they may read and write together.
        model_cost_usd: US dollars that they may cost.
    """

    agent_timeout_s: float = 1800.0
    grading_timeout_s: float = 600.0
    network: bool = False
    model_calls: int | None = None
    model_tokens: int | None = None
    model_cost_usd: float | None = None

    def _problems(self) -> Iterator[Problem]:
        for name in ("agent_timeout_s", "grading_timeout_s"):
            yield from positive(name, getattr(self, name))
        for name in ("model_calls", "model_tokens", "model_cost_usd"):
            yield from positive(name, getattr(self, name), "")


@frozen(kw_only=True)
class Conditions:
    """What holds for the work on a task: what its case says, or what a case says by default.

    Attributes:
        matrix: Who works on it, and how often.
        limits: What a cell may use.
        expect: What counts as passing.
        file: The file that defines it, as the user would type it; empty where nothing says.
        root: Absolute path of that file's directory.
        harnesses_file: The ``harnesses.yaml`` that applies to it, or an empty string.
    """

    matrix: Matrix = NO_MATRIX
    limits: CellLimits
    expect: Expect
    file: str
    root: str
    harnesses_file: str


@frozen(kw_only=True)
class SelfTest(Ruled):
    """What proves that the case grades right; see `assay selftest`.

    Attributes:
        reference: The recording that must score 1.0; by default the one named reference, honest,
            fix, solution or gold.
        bad: Recordings that must not pass, each with the grader or flag that must catch it.
        repeats: How often the graders are run; all must agree. At least 1.
    """

    reference: str = ""
    bad: Mapping[str, str] = field(default_factory=dict[str, str])
    repeats: int = 3

    def _problems(self) -> Iterator[Problem]:
        if self.repeats < 1:
            yield Problem(("repeats",), f"must be at least 1, got {self.repeats}")


_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


HARNESSES_FILE = "harnesses.yaml"
"""Name of the file, beside the cases or above them."""

SUITE = "/suite"
"""Where a harness finds its relative mounts, so that no command depends on where a suite lies."""

PLACEHOLDERS = (
    "prompt",
    "model",
    "model_name",
    "workspace",
    "gateway",
    "sandbox",
    "artifacts_dir",
    "mcp",
)
"""What an argument may name in braces; ``sandbox`` is the older name of ``workspace``."""

TranscriptFormat: TypeAlias = Literal[
    "claude-code",
    "codex",
    "codex-session",
    "opencode",
    "gemini-cli",
    "openai-chat",
    "openai-responses",
    "anthropic",
    "exchanges",
    "openai-agents",
    "otel",
    "inspect",
    "atif",
]
"""What is known to be a transcript."""

TraceFormat: TypeAlias = Literal[
    "claude-code", "codex", "opencode", "gemini-cli", "openai-chat", "atif", "auto", "gateway"
]
"""What a harness may print instead of its answer; ``auto`` is recognised by content. Of
``gateway`` nothing is read: what passed there tells it all, also the answer."""


@frozen(kw_only=True)
class HarnessSpec(Ruled):
    """An agent that is a command.

    Attributes:
        argv: Program and arguments, in which {prompt}, {model}, {model_name} (as its provider
            calls it), {workspace} and {gateway} are filled in, and {sandbox}, {artifacts_dir} and
            {mcp} for older files; a brace itself is written twice.
        resume: Program and arguments that go on with the work when the case has a further message,
            likewise: run in the same sandbox when what ran before has ended well.
        timeout_s: Seconds that it may work.
        env: Variables it is started with.
        tools_env: Those that it is started with as well, or instead of such in `env`, where its
            task offers tools.
        pass_env: Names of variables that it is given from assay's own environment, such as keys.
        mounts: Files and directories that it may read, such as where it is installed: relative to
            the file of harnesses, shown below `SUITE` by the same path; or absolute, shown there.
        gateway: Whether it asks its model through the cell's gateway, which limits and records
            what it asks. It finds it, and a key for it, by the variables of OpenAI's and
            Anthropic's packages; or by {gateway} in its arguments, an address without a path.
        acp: Whether it is told what to do by the Agent Client Protocol, on its standard streams. It
            takes further messages, and who answers its requests for permission is the case's.
        trace: What its standard output is a transcript in; by default its output is its answer,
            and nothing is known of its work. A file that it writes is not a trace: the agent can
            write files too.
    """

    argv: tuple[str, ...]
    resume: tuple[str, ...] = ()
    timeout_s: float = 1800.0
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    tools_env: Mapping[str, str] = field(default_factory=dict[str, str])
    pass_env: tuple[str, ...] = ()
    mounts: tuple[str, ...] = ()
    gateway: bool = False
    acp: bool = False
    trace: TraceFormat | None = None

    def _problems(self) -> Iterator[Problem]:
        yield from positive("timeout_s", self.timeout_s)
        if not self.argv or not self.argv[0].strip():
            yield Problem(("argv",), "argv names no program")
        if self.acp and (self.resume or self.trace is not None):
            name = "resume" if self.resume else "trace"
            yield Problem((name,), f"acp takes no {name}: its protocol says it all")
        for name, given in (("trace", self.trace == "gateway"), ("tools_env", self.tools_env)):
            if given and not self.gateway:
                yield Problem((name,), "it has no gateway", "set gateway: true beside it")
        words = [(("argv", n), argument) for n, argument in enumerate(self.argv)]
        words += [(("resume", n), argument) for n, argument in enumerate(self.resume)]
        for where, argument in words:
            yield from _placeholder_problems(argument, where)
            if "{gateway}" in argument.replace("{{", "") and not self.gateway:
                hint = f"set gateway: true beside {where[0]}"
                yield Problem(where, "it has no gateway", hint)
        for number, name in enumerate(self.pass_env):
            place = ("pass_env", number)
            if not _VARIABLE.fullmatch(name):
                yield Problem(place, f"{name!r} is not a valid variable name")
            elif name in self.env or name in self.tools_env:
                where = "env" if name in self.env else "tools_env"
                yield Problem(place, f"{name} is in {where}, too", "keep one of them")
        yield from mount_problems(self.mounts)

    def commands(
        self,
        prompts: Sequence[str],
        *,
        model: str,
        model_name: str = "",
        workspace: str,
        gateway: str = "",
    ) -> list[list[str]]:
        """The command line of each message, every place in it filled in once.

        Nothing in a prompt is taken for a place, because only the template is looked through.
        """
        values: dict[str, str] = dict.fromkeys(PLACEHOLDERS, workspace)
        values |= {"model": model, "model_name": model_name or model, "mcp": "", "gateway": gateway}
        return [
            [part.format_map({**values, "prompt": prompt}) for part in template]
            for prompt, template in zip(
                prompts, chain([self.argv], repeat(self.resume)), strict=False
            )
        ]


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
