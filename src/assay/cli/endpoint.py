"""``assay serve grader``: serve a grader until Ctrl-C."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from assay.cli.fields import settings_of
from assay.cli.named_grader import function_of
from assay.cli.options import (
    add_db,
    add_set,
    add_trust_authors,
    explain,
    file_and_name,
    is_trusted,
    key_and_number,
    port,
    store_there,
)
from assay.endpoint.scorers import scorer_of
from assay.endpoint.served import OnError, Scorer, ServedOptions
from assay.endpoint.serving import require_protection, run_app, serve_wire
from assay.errors import InputError
from assay.scoring.graded import Graded
from assay.types.submission import Submission

if TYPE_CHECKING:
    from argparse import Namespace

    from fastapi import FastAPI

    from assay.registry.policy import Permissions
    from assay.store.catalog import GraderVersion


_MORE = """\
What is served is a function of a Python file, which is trusted and runs in this process; a file
of graders; or the key of a stored grader. It answers /v1/grade, and in the forms of Adaptive's
reward server, OpenRLHF's remote reward model and NeMo Gym's verify. Ctrl-C ends it.

exit status: 0 ended, 2 bad input, 3 it could not be served"""

_EXAMPLES = """\
  assay serve grader reward.py
  assay serve grader reward.py:grade --port 8080 --token-env REWARD_TOKEN
  assay serve grader graders.yaml --host 0.0.0.0 --token-env REWARD_TOKEN
  assay serve grader exact@3"""


def add(parser: ArgumentParser) -> None:
    """Say what ``assay serve grader`` takes."""
    explain(parser, _MORE, _EXAMPLES)
    add = parser.add_argument
    add(
        "grader",
        metavar="GRADER",
        help="FILE.py or FILE.py:FUNCTION, a graders.yaml, or KEY or KEY@VERSION of a stored one",
    )
    add("--host", default="127.0.0.1", metavar="ADDRESS", help="where to listen; only this machine")
    add("--port", type=port, default=8000, metavar="N", help="8000 by default; 0 takes a free one")
    add(
        "--token-env",
        default="",
        metavar="NAME",
        help="environment variable with the bearer token callers must send",
    )
    add(
        "--hmac-env",
        default="",
        metavar="NAME",
        help="environment variable with the secret for signatures",
    )
    add(
        "--without-auth",
        action="store_true",
        help="accept other machines without a secret, for callers that cannot send one",
    )
    add_set(parser, "name, score_range, max_batch, max_bytes or on_error (zero, fail)")
    add_db(parser, "of the stored grader")
    add_trust_authors(parser)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Settings:
    """How a grader is served; see `Served`. Only a function has no range of its own."""

    name: str = ""
    score_range: tuple[float, float] | None = None
    max_batch: int = 256
    max_bytes: int = 16 << 20
    on_error: OnError = "zero"


def run(given: Namespace) -> int:
    """Serve a grader."""
    secret = given.token_env or given.hmac_env
    require_protection(given.host, secret, without_auth=given.without_auth)
    settings = settings_of(_Settings, given.set)
    with ExitStack() as stack:
        scorer, found = _scorer(given, stack, settings)
        options: ServedOptions = {
            **found,
            "max_batch": settings.max_batch,
            "max_bytes": settings.max_bytes,
            "on_error": settings.on_error,
        }
        if settings.name:
            options["name"] = settings.name
        app = serve_wire(scorer, token_env=given.token_env, hmac_env=given.hmac_env, **options)

        def started(url: str) -> None:
            for line in _routes(app):
                print(line)
            print(f"described at {url}{app.openapi_url}")
            print(f"serving {options.get('name', '')} at {url} (Ctrl-C ends it)", flush=True)

        run_app(app, host=given.host, port=given.port, on_start=started)
    return 0


def _routes(app: FastAPI) -> list[str]:
    """A line for each route: method, path, what it does and for whom."""
    paths = cast("Mapping[str, Mapping[str, Mapping[str, str]]]", app.openapi()["paths"])
    return [
        f"{method.upper():<4} {path:<18}  {operation['summary']}"
        for path, operations in paths.items()
        for method, operation in operations.items()
    ]


def _scorer(
    given: Namespace, stack: ExitStack, settings: _Settings
) -> tuple[Scorer, ServedOptions]:
    file, called = file_and_name(given.grader)
    is_function = file.endswith(".py")
    if settings.score_range is not None and not is_function:
        raise InputError("score_range is for functions; other graders declare their own")
    if is_function:
        function = function_of(file, called)
        name = str(getattr(function, "__name__", Path(file).stem))
        span = settings.score_range or (0.0, 1.0)
        return scorer_of(function), {"name": name, "score_range": span}
    if Path(file).suffix in (".yaml", ".yml", ".json"):
        from assay.endpoint.scorers import scorer_of_graders
        from assay.tasks.grader_files import load_graders

        return scorer_of_graders(load_graders(file, alone=True)), {"name": Path(file).stem}
    return _stored(given, stack)


def _stored(given: Namespace, stack: ExitStack) -> tuple[Scorer, ServedOptions]:
    """One version of a stored grader; the latest there is now."""
    from assay.registry import Registry
    from assay.registry.grading import grade_version
    from assay.registry.policy import Permissions
    from assay.store.database import Database

    key, number = key_and_number(given.grader)
    database = stack.enter_context(Database.open(store_there()))
    trusted = is_trusted(given)
    registry = Registry(database, given.project)
    record = registry.get(key)
    version = registry.version(key, number) if number else record.latest
    permissions = Permissions(custom_code=trusted, internal=trusted)
    _require_grading(version, permissions)

    async def score(items: Sequence[tuple[str, Submission]]) -> Sequence[Graded]:
        return await grade_version(version, items, permissions)

    options: ServedOptions = {
        "name": record.name,
        "version": str(version.number),
        "description": record.description,
    }
    if version.kind == "function":
        options["score_range"] = _range_of(version.definition.get("range"))
    return score, options


def _require_grading(version: GraderVersion, permissions: Permissions) -> None:
    """Refuse a grader that would answer every request with an error."""
    from assay.endpoint.scorers import require_servable
    from assay.registry.definitions import definition_from
    from assay.registry.grading import refusal

    definition = definition_from(version.kind, version.definition)
    if refused := refusal(definition, permissions):
        raise InputError(
            f"{version.key}@{version.number} cannot be served: {refused.message}",
            hint=refused.hint,
        )
    require_servable(definition.graders)


def _range_of(declared: object) -> tuple[float, float] | None:
    """The range that a function's definition declares; without one it gives any number."""
    pair = cast("list[object]", declared) if isinstance(declared, list) else []
    numbers = [float(number) for number in pair if isinstance(number, int | float)]
    return (numbers[0], numbers[1]) if len(numbers) == 2 else None
