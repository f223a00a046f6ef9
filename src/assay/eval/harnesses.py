"""The harnesses of a matrix: from the name in a case to an agent."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from assay.errors import InputError, Location, nearest
from assay.tasks.case import Case
from assay.tasks.task import Agent, Task, solution_of

if TYPE_CHECKING:
    from assay.conversation.turns import Conversation
    from assay.gateway import Gateway
    from assay.tasks.blocks import CellLimits, Conditions, HarnessSpec
    from assay.types.submission import UnpackedImage

BUILT_IN = ("agent", "echo", "replay")
"""Harnesses that need no declaration; others are declared in a ``harnesses.yaml``."""

FAKE = "fake"
"""A model that needs no key and no network: see `fake_models`."""

_NOTHING = "I am a fake model, and there is no reference recording or solution that I could give."


def declared_harnesses(conditions: Conditions) -> Mapping[str, HarnessSpec]:
    """The harnesses of the ``harnesses.yaml`` that applies to a task, by name.

    Raises:
        DocumentError: With everything that is wrong in it.
    """
    if not conditions.harnesses_file:
        return {}
    from assay.tasks.blocks import load_harnesses

    return load_harnesses(conditions.harnesses_file)


def usable_harnesses(
    task: Task, names: Iterable[str], declared: Mapping[str, HarnessSpec]
) -> Mapping[str, HarnessSpec]:
    """The harnesses that were declared for a task, and those of the names that need no declaration.

    Raises:
        InputError: If one of them is not installed here, with what mends that.
    """
    from assay.agents.presets import PRESETS, preset

    wanted = [name for name in names if name in PRESETS and name not in declared]
    root = task.conditions.root
    # Which way one starts in an image is asked when the image is here.
    in_image = isinstance(task.work, Case) and task.work.image is not None
    ways = {
        n: next(preset(n).for_image(root)) if in_image else preset(n).find(root) for n in wanted
    }
    return {**declared, **{name: way.harness() for name, way in ways.items()}}


def harnesses_in_images(
    cases: Iterable[Case], usable: Mapping[str, Mapping[str, HarnessSpec]], cache: str
) -> dict[str, Mapping[str, HarnessSpec]]:
    """By case, the harnesses that need no declaration as they start in the case's image. Blocks.

    Args:
        cases: The cases, with their images unpacked.
        usable: Case id to its harnesses.
        cache: Directory that is shared by all cells.

    Raises:
        InputError: If one starts in no way, with what mends that.
    """
    found = dict(usable)
    tried: dict[tuple[str, ...], str] = {}
    for case in cases:
        if case.image is None:
            continue
        if not (names := usable[case.id].keys() - declared_harnesses(case.conditions)):
            continue
        from assay.eval.workspaces.images import prepare

        image = prepare(case.image, cache, case=case.id)
        started = {name: _in_image(name, case, image, tried) for name in sorted(names)}
        found[case.id] = {**usable[case.id], **started}
    return found


def _in_image(
    name: str, case: Case, image: UnpackedImage, tried: dict[tuple[str, ...], str]
) -> HarnessSpec:
    from assay.agents.presets import preset
    from assay.eval.workspaces.images import why_it_does_not_start

    said: dict[str, None] = {}
    for way in (known := preset(name)).for_image(case.root):
        if (key := (image.digest, name, way.program)) not in tried:
            tried[key] = why_it_does_not_start(way, image)
        if not tried[key]:
            return way.harness()
        said[f"{way.program}: {tried[key]}"] = None
    raise InputError(
        f"case {case.id!r}: harness {name!r} does not start in its image: {'; '.join(said)}",
        location=Location(file=case.file),
        hint=f"in its Dockerfile: RUN {known.setup or known.install}; or in the case's "
        f"container: setup: [{known.setup or known.install}]",
    )


def require_harnesses(task: Task, names: set[str], declared: Mapping[str, HarnessSpec]) -> None:
    """Refuse harnesses that nobody declared, and those that would show the agent the case's files.

    Raises:
        InputError: Naming the case and the nearest harness, or the mount.
    """
    from assay.agents.presets import PRESETS

    own, conditions = task.conditions.matrix.pairs(), task.conditions
    for name in sorted(names):
        if name not in BUILT_IN and name not in PRESETS and name not in declared:
            raise InputError(
                f"case {task.slug!r}: unknown harness {name!r}",
                # One that was asked for on the command line stands in no file.
                location=Location(file=conditions.file) if name in dict(own) else None,
                hint=_mended(name, [*BUILT_IN, *PRESETS, *declared]),
            )
        for mount in declared[name].mounts if name in declared else ():
            _check_mount(mount, name, conditions.harnesses_file, task)
    if isinstance(task.work, Case):
        _require_what_it_says(task, task.work, names, declared)


def _mended(name: str, known: list[str]) -> str:
    if name.endswith(".py"):
        return f"an agent of it is {name}:NAME"
    if ".py:" in name:  # outside of the sandbox: whoever runs the case decides, not its file
        return f"no file names an agent in Python; ask for it: assay run --harness {name}"
    own = "an agent of your own is `--harness FILE.py:NAME`"
    return f"{nearest(name, known)}; declare others in harnesses.yaml; {own}"


def _require_what_it_says(
    task: Task, case: Case, names: set[str], declared: Mapping[str, HarnessSpec]
) -> None:
    """Refuse harnesses that cannot do what a case asks of its agent beside the work."""
    for name in sorted(names):
        if case.task.turns and not _goes_on(name, declared):
            raise InputError(
                f"case {case.id!r} has turns, and harness {name!r} cannot go on with its work",
                location=Location(file=case.file, field="task.turns"),
                hint="give the harness `resume`, which continues what it did; or take one that can",
            )
        if case.task.user is not None and (name in declared or name not in BUILT_IN):
            raise InputError(
                f"case {case.id!r} has a user, and harness {name!r} talks with none",
                location=Location(file=case.file, field="task.user"),
                hint="take the harness agent",
            )
    policy = None if case.observe is None else case.observe.interaction
    if policy and policy.model and any(declared[name].acp for name in names & declared.keys()):
        _check_policy(policy.model, case)
    if "agent" in names - declared.keys() and case.artifacts.mcp is not None:
        from assay.tasks.mcp_servers import load_mcp_servers

        file = case.resolve(case.artifacts.mcp)
        for name, server in load_mcp_servers(file).items():
            for mount in server.mounts:
                _check_mount(mount, name, file, task)


def require_turns(case: Case, names: Collection[str], agents: Mapping[str, Agent]) -> None:
    """Refuse Python agents for a case that goes on after its prompt, unless they can.

    Raises:
        InputError: Naming the case and the agent.
    """
    if not case.task.turns and case.task.user is None:
        return
    for name in sorted(names):
        if not hasattr(agents[name], "for_task"):
            said = "turns" if case.task.turns else "a user"
            raise InputError(
                f"case {case.id!r} has {said}, and the agent {name!r} is told its prompt alone",
                hint="take the harness agent",
            )


def _check_policy(model: str, case: Case) -> None:
    from assay.models.client import unconfigured

    if missing := unconfigured(model):
        raise InputError(
            f"case {case.id!r}: nobody can ask {model!r} what to allow: {missing}",
            location=Location(file=case.file, field="observe.interaction.model"),
        )


def _goes_on(name: str, declared: Mapping[str, HarnessSpec]) -> bool:
    """Whether a harness takes further messages; one that asks no model just has no use for them."""
    if name in declared:
        return bool(declared[name].resume) or declared[name].acp
    from assay.agents.presets import PRESETS, preset

    return name not in PRESETS or bool(preset(name).resume) or preset(name).acp


def _check_mount(mount: str, name: str, file: str, task: Task) -> None:
    shown = Path(file).parent.joinpath(mount)
    field = f"{file or 'harness'}: {name}.mounts: {mount!r}"
    if not shown.exists():
        raise InputError(f"{field} does not exist")
    if Path(task.conditions.root).resolve().is_relative_to(shown.resolve()):
        raise InputError(
            f"{field} holds the case {task.slug!r}: "
            "the agent could read its graders and recordings",
            hint="mount a directory that holds the agent alone",
        )


def require_recordings(
    case: Case, declared: Mapping[str, HarnessSpec], asked: Iterable[str] | None = None
) -> None:
    """Refuse a case that replays recordings which are not there.

    Args:
        case: The case.
        declared: The harnesses of its ``harnesses.yaml``.
        asked: Recordings that whoever runs it asks for; by default those of its matrix.

    Raises:
        InputError: Naming the case, the recording and the nearest that there is.
    """
    listed = (model for harness, model in case.matrix.pairs() if harness == "replay")
    wanted = list(listed if asked is None else asked)
    if not wanted or "replay" in declared:
        return
    from assay.agents.replay import recordings_of

    directory = str(Path(case.root, "recordings"))
    found = sorted(recordings_of(directory))
    for model in wanted:
        if model not in found:
            hint = nearest(model, found) if found else f"keep it in {directory}/{model}/"
            if asked is not None:
                hint += f"; to let a model do the work: --harness agent --model {model}"
            raise InputError(
                f"case {case.id!r} replays {model!r}, of which there is no recording",
                location=Location(file=case.file),
                hint=hint,
            )


def agent_for(name: str, task: Task, spec: HarnessSpec | None) -> Agent:
    """The agent that a harness name means for a task; `spec` is how it was declared, if it was."""
    conditions, case = task.conditions, task.work if isinstance(task.work, Case) else None
    timeout = conditions.limits.agent_timeout_s
    if spec is not None:
        from assay.agents.command import CommandAgent

        limited = replace(spec, timeout_s=min(spec.timeout_s, timeout))
        observed = None if case is None else case.observe
        return CommandAgent(
            spec=limited,
            network=conditions.limits.network,
            root=str(Path(conditions.harnesses_file).parent),
            turns=() if case is None else case.task.turns,
            interaction=None if observed is None else observed.interaction,
            name=name,
        )
    if name == "agent":
        from assay.agents.model import ModelAgent

        return ModelAgent().for_task(task)
    if name == "replay":
        from assay.agents.replay import ReplayAgent

        return ReplayAgent(directory=str(Path(conditions.root, "recordings")), timeout_s=timeout)
    from assay.agents.echo import EchoAgent

    return EchoAgent()


def require_model(model: str, slug: str, *, is_anothers: bool = False) -> None:
    """Refuse a model that cannot be asked, before anything is run.

    Args:
        model: The model.
        slug: The task that it would work on.
        is_anothers: Whether its case lists it for another harness, and nobody named one for this.

    Raises:
        InputError: Saying what is missing.
    """
    from assay.models.client import unconfigured

    if model != FAKE and (missing := unconfigured(model)):
        if (meant := nearest(model, [FAKE])).startswith("did"):
            missing += f"; {meant}"
        if is_anothers:
            missing += f"; or name one: --model anthropic:NAME, or --model {FAKE}, without a key"
        raise InputError(f"case {slug!r}: its agent cannot ask {model!r}: {missing}")


@contextmanager
def fake_models(tasks: Iterable[Task]) -> Generator[Mapping[str, str]]:
    """A fake model for each task, by slug, which does what a case's reference recording does.

    It shows how a case runs with a model, without one: whatever the agent, the files of the
    recording are written and its script is run through the agent's own shell. For other tasks it
    gives the solution that their metadata has, of several steps one action after the other.
    """
    listed = list(tasks)
    if not listed:
        yield {}
        return
    from assay.agents.replay import recordings_of
    from assay.eval.proofs.isolation import reference_of
    from assay.testing import FakeModel, through_recording, through_shell

    with ExitStack() as stack:
        found: dict[str, str] = {}
        for task in listed:
            case = task.work
            name = reference_of(case) if isinstance(case, Case) else None
            if isinstance(case, Case) and name:
                move = through_recording(recordings_of(str(Path(case.root, "recordings")))[name])
            else:
                move = _actions_of(task) or through_shell(done=solution_of(task) or _NOTHING)
            found[task.slug] = stack.enter_context(FakeModel(move, model=FAKE)).model
        yield found


def _actions_of(task: Task) -> Callable[[Conversation], object] | None:
    """Takes the actions of a solution one by one, in a task that takes several."""
    actions = task.metadata.get("solution")
    most = getattr(task.work, "max_steps", 1)
    if not isinstance(actions, list) or not actions or most < 2:
        return None

    def move(conversation: Conversation) -> object:
        taken = sum(turn.speaker == "assistant" for turn in conversation.turns)
        return str(actions[min(taken, len(actions) - 1)])

    return move


def gateway_for(
    model: str, limits: CellLimits, *, journal: str = "", journal_of: str = ""
) -> Callable[[], Gateway]:
    """What makes the gateway of a cell.

    Args:
        model: The model that is to be asked.
        limits: What may be asked of it.
        journal: File that keeps what passes.
        journal_of: What it says that it is of.
    """

    def make() -> Gateway:
        from assay.gateway import Allowance, Gateway

        if journal:  # that of an attempt which was interrupted goes
            Path(journal).parent.mkdir(parents=True, exist_ok=True)
            Path(journal).unlink(missing_ok=True)
        allowance = Allowance(
            calls=limits.model_calls, tokens=limits.model_tokens, cost_usd=limits.model_cost_usd
        )
        return Gateway(model, allowance=allowance, journal=journal or None, journal_of=journal_of)

    return make
