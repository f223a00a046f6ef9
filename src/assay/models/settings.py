"""`ModelSettings`: how models are reached, and what asking them may cost."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Annotated, Literal, Self, TypeAlias, cast, get_args

from assay.conversation.messages import Rung
from assay.errors import InputError, Location
from assay.frozen import frozen
from assay.models.reference import (
    MODEL_KEY,
    MODEL_URL,
    PROVIDER_TABLE,
    Protocol,
    check_base_url,
    read_gateway,
)
from assay.scoring.json_safe import plain
from assay.types.codec import Within, check_fields, from_json

CacheMode: TypeAlias = Literal["off", "readwrite", "read", "replay"]
"""``read`` stores nothing; ``replay`` also asks nothing: what is not recorded is an error."""

_AtOnce: TypeAlias = Annotated[int, Within(1, 10_000)]
_Rate: TypeAlias = Annotated[float, Within(0.01)]
_Tokens: TypeAlias = Annotated[float, Within(1)]

_FORBIDDEN = frozenset("#:/ ")  # in the name of an endpoint
_CACHE_MODES: tuple[str, ...] = get_args(CacheMode)
RUNGS: tuple[str, ...] = get_args(Rung)


@frozen(kw_only=True)
class ModelEntry:
    """One entry of the settings file: a name for a model and the way to it.

    Attributes:
        base_url: Where it is; empty for OpenAI's or Anthropic's own address.
        model: The model's name there; empty if it is the entry's own name.
        protocol: Whose protocol is spoken.
        key_env: Variable of the environment that holds its key; empty for none.
        key_header: Header that carries the key; empty for the protocol's own.
        headers: Further headers.
        structured: How replies are made to have their shape; empty to find out.
        responses: Whether it speaks OpenAI's responses, too; else agents that do are answered from
            its chat completions.
        max_concurrency: Most requests in flight; None for that of `ModelSettings`.
        requests_per_minute: Likewise; None for no such limit.
        tokens_per_minute: Likewise.

    Raises:
        InputError: For a value that makes no sense; the message begins with the field.
    """

    base_url: str = ""
    model: str = ""
    protocol: Protocol = "openai"
    key_env: str = ""
    key_header: str = ""
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    structured: Rung | Literal[""] = ""
    responses: bool = False
    max_concurrency: _AtOnce | None = None
    requests_per_minute: _Rate | None = None
    tokens_per_minute: _Tokens | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        if self.protocol not in ("openai", "anthropic"):
            raise InputError("protocol must be 'openai' or 'anthropic'")
        if self.structured and self.structured not in RUNGS:
            raise InputError(f"structured must be one of {', '.join(RUNGS)}")
        if self.base_url:
            object.__setattr__(self, "base_url", check_base_url(self.base_url, self.protocol))
        for name, value in self.headers.items():
            _check_header(name, value)
        if self.key_header:
            _check_header(self.key_header, "")


@frozen(kw_only=True)
class ModelSettings:
    """How models are reached, and what asking them may cost.

    Attributes:
        cache: ``off``; ``readwrite`` (answer from the cache, keep what is new); ``read`` (keep
            nothing); ``replay`` (answer from the cache, or fail).
        cache_file: SQLite file of the cache.
        max_cost_usd: US dollars that may be spent; None for no limit.
        max_attempts: Tries of one request.
        first_concurrency: Requests in flight at first, for each endpoint.
        max_concurrency: Most of them.
        requests_per_minute: For each endpoint; None for no such limit.
        tokens_per_minute: Likewise, read and written together.
        breaker_after: So many requests in a row that fail at an endpoint, and the next ones fail
            at once for a while.
        gateway: Base URL that all provider references (``anthropic:``, ``openai:``, ``google:``,
            bare names) go to instead; OpenAI's protocol, or Anthropic's with ``anthropic+`` before
            it. The model's name is sent as it stands.
        gateway_key_env: Variable that holds the gateway's key; it need not be set.
        prices_file: JSON file of prices that go before the built-in ones.
        endpoints: The entries of the settings file, by name.
        secrets: Keys and addresses by the name of their variable; see `from_environment`.

    Raises:
        InputError: For a value that makes no sense; the message begins with the field.
    """

    cache: CacheMode = "off"
    cache_file: str = ".assay/models.sqlite"
    max_cost_usd: Annotated[float, Within(0)] | None = None
    max_attempts: Annotated[int, Within(1, 100)] = 6
    first_concurrency: _AtOnce = 16
    max_concurrency: _AtOnce = 256
    requests_per_minute: _Rate | None = None
    tokens_per_minute: _Tokens | None = None
    breaker_after: Annotated[int, Within(1)] = 20
    gateway: str = ""
    gateway_key_env: str = "ASSAY_GATEWAY_KEY"
    prices_file: str = ""
    endpoints: Mapping[str, ModelEntry] = field(default_factory=dict[str, ModelEntry])
    secrets: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)

    def __post_init__(self) -> None:
        if self.cache not in _CACHE_MODES:
            raise InputError(f"cache must be one of {', '.join(_CACHE_MODES)}, got {self.cache!r}")
        check_fields(self)
        for name in self.endpoints:
            if not name or _FORBIDDEN & set(name) or not name.isprintable():
                place = Location(field=f"endpoints.{name}")
                raise InputError("a name has no ':', '#', '/' or blank in it", location=place)
        if self.gateway:
            read_gateway(self.gateway)

    @classmethod
    def from_environment(
        cls, environ: Mapping[str, str] | None = None, **changes: object
    ) -> ModelSettings:
        """The settings that the environment and the file it names give.

        Args:
            environ: The environment; `os.environ` by default. Read are ``ASSAY_MODELS`` (a YAML
                file), ``ASSAY_CACHE``, ``ASSAY_CACHE_FILE``, ``ASSAY_MAX_COST_USD``,
                ``ASSAY_GATEWAY``, ``ASSAY_GATEWAY_KEY``, ``ASSAY_MODEL_KEY``,
                ``ASSAY_MODEL_URL``, the keys and base URLs of OpenAI, Anthropic and Gemini, and
                the keys that the file names. What a variable says goes before the file.
            changes: Fields of these settings that go before both.

        Raises:
            InputError: If a value or the file cannot be read; names which.
        """
        environ = os.environ if environ is None else environ
        values: dict[str, object] = {}
        if file := environ.get("ASSAY_MODELS", "").strip():
            values |= read_settings_file(file)
        for variable, name in (
            ("ASSAY_CACHE", "cache"),
            ("ASSAY_CACHE_FILE", "cache_file"),
            ("ASSAY_GATEWAY", "gateway"),
        ):
            if text := environ.get(variable, "").strip():
                values[name] = text
        if text := environ.get("ASSAY_MAX_COST_USD", "").strip():
            values["max_cost_usd"] = _dollars(text)
        values |= changes
        known = {field.name for field in dataclasses.fields(cls)}
        if unknown := sorted(values.keys() - known):
            raise InputError(f"unknown model setting {unknown[0]!r}")
        made = cls(**values)  # pyright: ignore[reportArgumentType]  # each field checks itself
        if "secrets" in values:
            return made
        addresses = _said(environ, made.addresses())
        return dataclasses.replace(made, secrets=addresses).with_keys(environ)

    @staticmethod
    def addresses() -> tuple[str, ...]:
        """Variables that hold where models are asked, which is the same for all machines."""
        return MODEL_URL, *(provider.url_variable for provider in PROVIDER_TABLE.values())

    def without_keys(self) -> Self:
        """The same settings for another machine, which has keys of its own: these stay here."""
        known = {name: self.secrets[name] for name in self.addresses() if name in self.secrets}
        return dataclasses.replace(self, secrets=known)

    def with_keys(self, environ: Mapping[str, str]) -> Self:
        """The same settings, with the keys that an environment has beside those that are known."""
        wanted = [MODEL_KEY, self.gateway_key_env]
        wanted += [endpoint.key_env for endpoint in self.endpoints.values() if endpoint.key_env]
        for provider in PROVIDER_TABLE.values():
            wanted += provider.key_variables
        return dataclasses.replace(self, secrets={**_said(environ, wanted), **self.secrets})


def _said(environ: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    return {name: text for name in names if (text := environ.get(name, "").strip())}


def _check_header(name: str, value: str) -> None:
    if not name.replace("-", "").isalnum() or not name.isascii():
        raise InputError(f"headers: {name!r} is not a valid header name")
    if not value.isprintable() or not value.isascii():
        raise InputError(f"headers: the value of {name!r} is not plain text")


def _dollars(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"ASSAY_MAX_COST_USD must be a number, got {text!r}") from None


def read_settings_file(file: str) -> dict[str, object]:
    """The fields of `ModelSettings` that a file gives.

    Args:
        file: Path of a YAML file: a mapping with the fields of `ModelSettings`, and under
            ``endpoints`` a mapping of names to the fields of `ModelEntry`.

    Raises:
        InputError: If it cannot be read or says what is not known; names the field.
    """
    import yaml

    try:
        text = Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8"
        raise InputError(
            f"the file of ASSAY_MODELS cannot be read: {reason}", location=Location(file)
        ) from None
    try:
        content: object = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - a safe loader either way
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark is not None else None
        problem = getattr(error, "problem", None) or "it is not YAML"
        raise InputError(str(problem), location=Location(file, line)) from None
    given = plain({} if content is None else content)
    if isinstance(given, dict) and "secrets" in given:
        place = Location(file, field="secrets")
        raise InputError("keys stand in the environment, not in a file", location=place)
    try:
        made = from_json(ModelSettings, given)
    except InputError as error:
        place = Location(file, field=error.location.field)
        raise InputError(error.message, location=place, hint=error.hint) from None
    return {name: getattr(made, name) for name in cast("dict[str, object]", given)}
