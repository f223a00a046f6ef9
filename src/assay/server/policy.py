"""What stored graders may do on this server: a stored definition is somebody else's wish."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from assay.scoring.json_safe import Json
from assay.server.problems import Fault, ProblemError
from assay.server.settings import ServerSettings

__all__ = ["require_allowed"]

_ENDPOINT = "external_endpoint"


def require_allowed(kind: str, definition: Mapping[str, Json], settings: ServerSettings) -> None:
    """Refuse a definition that this server may not carry out, when it is stored and when it runs.

    Custom code runs unsandboxed; an endpoint may reach what only the server can reach; a secret
    may be sent only to the host that whoever runs the server has named for it.

    Args:
        kind: The grader's kind.
        definition: Its definition as plain JSON.
        settings: What the server may do.

    Raises:
        ProblemError: 403, naming the field and the server's option.
    """
    if kind == "custom" and definition.get("path") and not settings.allow_custom_code:
        raise _refusal(
            "definition.path", "custom code does not run on this server", "--allow-custom-code"
        )
    for place, endpoint in _endpoints(kind, definition):
        if endpoint.get("allow_internal") and not settings.allow_internal_endpoints:
            raise _refusal(
                f"{place}.allow_internal",
                "endpoints on the server's own network are not allowed",
                "--allow-internal-endpoints",
            )
        _require_secret(place, endpoint, settings)
    if not settings.allow_internal_endpoints:
        for place in _addresses(definition):
            raise _refusal(
                place,
                "a stored judge may not name the address of a model on this server",
                "--allow-internal-endpoints",
                "give the model a name in the server's settings file (ASSAY_MODELS)",
            )


def _endpoints(
    kind: str, definition: Mapping[str, Json]
) -> Iterator[tuple[str, Mapping[str, Json]]]:
    """Everything in a definition that calls out, with its place."""
    if kind == _ENDPOINT:
        yield "definition", definition
        return
    for place, part in _parts(definition):
        if part.get("type") == _ENDPOINT:
            yield place, part


_MODELS = ("judge_model", "model", "models", "escalate")


def _addresses(definition: Mapping[str, Json]) -> Iterator[str]:
    """Places in a definition where a model is named by its address."""
    for place, part in _parts(definition):
        for name in _MODELS:
            named = part.get(name)
            for model in named if isinstance(named, list) else [named]:
                if isinstance(model, str) and "://" in model:
                    yield f"{place}.{name}"


def _parts(definition: Mapping[str, Json]) -> Iterator[tuple[str, Mapping[str, Json]]]:
    """Every mapping in a definition, with its place."""
    waiting: list[tuple[str, Json]] = [("definition", dict(definition))]
    while waiting:
        place, value = waiting.pop()
        if isinstance(value, dict):
            yield place, value
            waiting.extend((f"{place}.{key}", item) for key, item in value.items())
        elif isinstance(value, list):
            waiting.extend((f"{place}[{number}]", item) for number, item in enumerate(value))


def _require_secret(place: str, endpoint: Mapping[str, Json], settings: ServerSettings) -> None:
    name = endpoint.get("secret_env")
    if not name:
        return
    host = settings.endpoint_secrets.get(str(name))
    url = str(endpoint.get("url"))
    try:
        theirs = urlsplit(url).hostname
    except ValueError:
        theirs = None
    if host is None or theirs != host.lower():
        raise _refusal(
            f"{place}.secret_env",
            f"the secret {name!r:.120} may not be sent to {theirs!r:.200}",
            f"--endpoint-secret {str(name)[:120]}=HOST",
        )


def _refusal(field: str, message: str, option: str, instead: str = "") -> ProblemError:
    hint = f"whoever runs the server allows it with {option}"
    if instead:
        hint = f"{instead}; or {hint}"
    return ProblemError(403, f"{message} ({hint})", faults=[Fault(field, message, hint)])
