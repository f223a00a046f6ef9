"""Operations on kinds of graders: what a form for each is made of, and what a draft would do."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, cast

from assay.errors import GraderError, InputError, Location
from assay.registry.forms import DeclaredKind
from assay.registry.previews import JudgePreview
from assay.scoring.json_safe import Json
from assay.service.graders import permitted
from assay.service.items import read_items
from assay.service.operation import Desk, Host, InProject, Row, Section, Spec
from assay.store.pages import Stretch
from assay.types.thread import StringThread

of_kinds = Section("/projects/{project}/grader-kinds", tag="graders")
_PROBE_SECONDS = 10.0

_TITLES: Mapping[str, str] = {
    "function": "Function",
    "binary_judge": "AI judge",
    "prebuilt_judge": "Pre-built",
    "external_endpoint": "External endpoint",
    "custom": "Custom",
    "declared": "Declared",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredKind:
    """A kind of stored grader.

    Attributes:
        name: What it is called.
        title: Its name for people.
        description: What it is.
        form: JSON Schema of the fields of its definition, with their defaults.
    """

    name: str
    title: str
    description: str
    form: Mapping[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class GraderKinds:
    """What graders can be made of.

    Attributes:
        kinds: The kinds of stored graders.
        declared: The kinds that a definition of the kind ``declared`` may list as its `graders`.
    """

    kinds: tuple[StoredKind, ...]
    declared: tuple[DeclaredKind, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointReport:
    """What an endpoint said when it was asked what it is.

    Attributes:
        online: Whether it answered as its protocol asks.
        error: Why not, if it did not.
        name: Its name, if it tells.
        version: Its version, if it tells.
        description: What it grades, if it tells.
        milliseconds: How long that took.
    """

    online: bool
    error: str = ""
    name: str = ""
    version: str = ""
    description: str = ""
    milliseconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownModel:
    """A model that a judge can be given here.

    Attributes:
        name: What a definition calls it.
        source: Where it is known from: ``settings`` (the file of ASSAY_MODELS), ``default``, or
            ``used`` by other graders of the project.
        ready: Whether its key is there, as far as that can be told without asking it; null where
            it cannot.
    """

    name: str
    source: str
    ready: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownModels:
    """The models that judges can be given here; any other reference may be written, too."""

    models: tuple[KnownModel, ...]


@of_kinds("GET")
async def list_kinds(host: Host, *, project: InProject = None) -> GraderKinds:
    """The kinds of graders, each with the JSON Schema of its fields."""
    from assay.registry.definitions import KINDS, form_schema
    from assay.registry.forms import declared_kinds

    async def made() -> GraderKinds:
        stored = tuple(
            StoredKind(name=name, title=_TITLES[name], description=told, form=form_schema(name))
            for name, told in KINDS.items()
        )
        return GraderKinds(kinds=stored, declared=declared_kinds())

    return await host.apart(made)


@of_kinds("POST", "/binary_judge/preview", role="viewer", lasts=False)
async def preview_judge(
    host: Host,
    definition: Annotated[
        Mapping[str, Json],
        Spec(
            "What the judge is, also half written.",
            example={"criteria": "It answers the question.", "user_template": "{{completion}}"},
        ),
    ],
    samples: Annotated[
        Sequence[Row], Spec("What is judged; a sample of assay's by default.", max_length=1)
    ] = (),
    *,
    project: InProject = None,
) -> JudgePreview:
    """What a judge would be sent: no model is asked, nothing is stored."""
    from assay.registry.previews import preview_judge as preview

    async def made() -> JudgePreview:
        try:
            return preview(definition, _thread(samples[0]) if samples else None)
        except GraderError as error:  # nobody answered: of what is sent to be judged, a fault
            place = Location(field="samples[0]")
            raise InputError(error.message, location=place, hint=error.hint) from error

    return await host.apart(made)


def _thread(row: Mapping[str, Json]) -> StringThread:
    from assay.graders.judges.template_context import conversation

    ((_, submission),) = read_items([row], "samples")
    return conversation(
        submission.answer, submission.question, submission.thread, submission.metadata
    )


@of_kinds("POST", "/external_endpoint/probe", lasts=False)
async def probe_endpoint(
    host: Host,
    definition: Annotated[
        Mapping[str, Json],
        Spec(
            "The endpoint, as it would be stored.",
            example={"url": "https://rewards.example.com", "protocol": "assay"},
        ),
    ],
    *,
    project: InProject = None,
) -> EndpointReport:
    """Ask an endpoint what it is; nothing is graded, nothing is stored."""

    async def asked() -> EndpointReport:
        from assay.graders.endpoint import EndpointGrader
        from assay.graders.endpoints.calling import probe

        wanted = permitted(host.permissions, "external_endpoint", definition)
        options = wanted.specs[0].options
        given = cast("float", options.get("timeout_seconds", _PROBE_SECONDS))
        settings = EndpointGrader.of(
            {**options, "timeout_seconds": min(given, _PROBE_SECONDS), "retries": 0}
        )
        began = time.monotonic()
        info = await probe(settings)
        return EndpointReport(
            online=info.online,
            error=info.error,
            name=info.name,
            version=info.version,
            description=info.description,
            milliseconds=(time.monotonic() - began) * 1_000,
        )

    return await host.apart(asked)


@Section("/projects/{project}/judge-models", tag="graders")("GET", role="editor")
def list_models(desk: Desk, *, project: InProject = None) -> KnownModels:
    """The models that judges can be given here: those of the settings, and those in use."""
    from assay.graders.judges.panel import DEFAULT_MODEL
    from assay.models import ModelSettings

    try:
        settings = ModelSettings.from_environment()
    except InputError:  # `assay doctor` says what is wrong with it; a judge may name any model
        settings = ModelSettings()
    found = {
        name: KnownModel(
            name=name,
            source="settings",
            ready=not endpoint.key_env or endpoint.key_env in settings.secrets,
        )
        for name, endpoint in settings.endpoints.items()
    }
    found.setdefault(DEFAULT_MODEL, KnownModel(name=DEFAULT_MODEL, source="default"))
    for grader in desk.graders.page(Stretch(200)):
        used = grader.latest.definition.get("judge_model")
        if isinstance(used, str):
            found.setdefault(used, KnownModel(name=used, source="used"))
    return KnownModels(models=tuple(found.values()))
