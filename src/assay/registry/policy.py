"""What stored graders may do where they run: a stored definition is somebody else's wish.

Custom code runs unsandboxed; an endpoint or a model's address may reach what only this machine can
reach; a secret may be sent only to the host that whoever runs the server has named for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from assay.errors import InputError, Location
from assay.frozen import frozen
from assay.scoring.json_safe import Json

_ENDPOINT = "external_endpoint"
_MODELS = ("judge_model", "model", "models", "escalate")
_PERMITS = "--trust-authors, or of a server --set allow_internal_endpoints=true"


class ForbiddenError(InputError):
    """A grader that whoever runs assay here has not permitted."""


@frozen(kw_only=True)
class Permissions:
    """What stored graders may do where they run; whoever starts the process decides.

    Attributes:
        custom_code: Import and run Python classes that graders name.
        internal: Call endpoints on this machine and on private networks, and models at addresses
            that graders name.
        secrets: Environment variables that endpoints may be sent, each with the one host that it
            may be sent to; None where any may be.
    """

    custom_code: bool = False
    internal: bool = False
    secrets: Mapping[str, str] | None = None

    def refusals(self, kind: str, definition: Mapping[str, Json]) -> Iterator[ForbiddenError]:
        """Everything in a definition that it may not do here, the gravest first."""
        if kind == "custom" and definition.get("path") and not self.custom_code:
            yield ForbiddenError(
                f"{definition['path']!r} is Python code of its author and is not imported here",
                location=Location(field="definition.path"),
                hint="grade with it where its author works, or write its scores in; whoever runs "
                "a server allows it with --set allow_custom_code=true",
            )
        for place, part in parts_of(definition):
            if (part is definition and kind == _ENDPOINT) or part.get("type") == _ENDPOINT:
                yield from self._endpoint_refusals(place, part)
        yield from self.address_refusals(definition)

    def address_refusals(self, definition: Mapping[str, Json]) -> Iterator[ForbiddenError]:
        """Models at addresses: who stores a grader would choose what is asked from here."""
        for place, part in () if self.internal else parts_of(definition):
            for name, model in models_in(part):
                if "://" in model:
                    yield ForbiddenError(
                        "a stored judge may not name the address of a model here",
                        location=Location(field=f"{place}.{name}"),
                        hint="give the model a name in the settings file of this machine "
                        f"(ASSAY_MODELS); or whoever runs assay here must permit it: {_PERMITS}",
                    )

    def require(self, kind: str, definition: Mapping[str, Json]) -> None:
        """Refuse a definition that may not be carried out here.

        Raises:
            ForbiddenError: Naming the field, and the option that would allow it.
        """
        for refusal in self.refusals(kind, definition):
            raise refusal

    def _endpoint_refusals(
        self, place: str, endpoint: Mapping[str, Json]
    ) -> Iterator[ForbiddenError]:
        if endpoint.get("allow_internal") and not self.internal:
            yield ForbiddenError(
                "endpoints on internal addresses are not called here",
                location=Location(field=f"{place}.allow_internal"),
                hint=f"whoever runs assay here must permit it: {_PERMITS}",
            )
        name = endpoint.get("secret_env")
        if self.secrets is None or not name:
            return
        try:
            theirs = urlsplit(str(endpoint.get("url"))).hostname
        except ValueError:
            theirs = None
        host = self.secrets.get(str(name))
        if host is None or theirs != host.lower():
            yield ForbiddenError(
                f"the secret {name!r:.120} may not be sent to {theirs!r:.200}",
                location=Location(field=f"{place}.secret_env"),
                hint=f"whoever runs the server allows it with --set "
                f"endpoint_secrets.{str(name)[:120]}=HOST",
            )


def models_in(part: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
    """The models that a mapping names, each with the key it stands under."""
    for name in _MODELS:
        named = part.get(name)
        for model in named if isinstance(named, list) else [named]:
            if isinstance(model, str) and model:
                yield name, model


def parts_of(definition: Mapping[str, Json]) -> Iterator[tuple[str, Mapping[str, Json]]]:
    """Every mapping in a definition, with its place."""
    yield "definition", definition
    waiting: list[tuple[str, Json]] = [(f"definition.{k}", v) for k, v in definition.items()]
    while waiting:
        place, value = waiting.pop()
        if isinstance(value, dict):
            yield place, value
            waiting.extend((f"{place}.{key}", item) for key, item in value.items())
        elif isinstance(value, list):
            waiting.extend((f"{place}[{number}]", item) for number, item in enumerate(value))
