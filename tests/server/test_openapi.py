"""The OpenAPI document tells the truth: what it declares is what the server answers."""

from __future__ import annotations

import functools
import importlib
import json
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from assay.scoring.json_safe import Json
from assay.server.app import OPENAPI, context_of, create_app
from assay.server.context import ServerSettings
from assay.service.site import new_key
from assay.store.database import Database
from assay.store.projects import ApiKeys
from tests.calibrated_graders import calibrated
from tests.server_app import EXACT

pytestmark = pytest.mark.slow

ROW: Json = {"answer": "4", "expected": "4"}
KNOWN = {"project": "default", "key": "four"}
EXAMPLES = 3


@functools.cache
def fuzzer() -> Any:
    """The library, which whoever does not fuzz need not import: it takes a second."""
    found: Any = importlib.import_module("schemathesis")  # its types are known in part only
    importlib.import_module("schemathesis.checks").load_all_checks()
    found.serializer("application/x-ndjson")(_lines)
    return found


def _lines(_: object, value: Any) -> bytes:
    """A body of lines, or what is none."""
    return (
        value.encode("utf-8", "replace") if isinstance(value, str) else json.dumps(value).encode()
    )


def _unfit(path: str) -> Any:
    """Checks that make no sense of a path."""
    names = [
        "ignored_auth",  # asks past our session; the tests of access do it
        "positive_data_acceptance",  # a schema cannot say which functions compile
    ]
    if path.startswith("/serve/"):  # what cannot be graded is a 500: these forms have no other word
        names.append("not_a_server_error")
    checks: Any = importlib.import_module("schemathesis.checks")
    return checks.CHECKS.get_by_names(names)


SLOW = (
    HealthCheck.too_slow,
    HealthCheck.filter_too_much,
    HealthCheck.data_too_large,
    HealthCheck.large_base_example,
)


@dataclass
class Fuzzed:
    """A running application, its document, and a session that is let in."""

    document: dict[str, Any]
    schema: Any
    session: Any
    headers: dict[str, str]


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fuzzed]:
    location = str(tmp_path_factory.mktemp("server") / "home")
    made = new_key()
    with Database.open(location) as database:
        ApiKeys(database).create("fuzz", "admin", "*", made.hashed, made.prefix)
    app = create_app(ServerSettings(location=location, poll_seconds=0.02, max_line_bytes=10_000))
    headers = {"Authorization": f"Bearer {made.token}", "Host": "localhost"}
    schemathesis = fuzzer()
    asgi: Any = importlib.import_module("schemathesis.python.asgi")
    with asgi.get_client(app) as session:
        here = "http://localhost/api/v1/projects/default"
        grader = {"key": "four", "kind": "declared", "definition": EXACT}
        assert session.post(f"{here}/graders", json=grader, headers=headers).status_code == 201
        custom: dict[str, Any] = {"key": "human", "kind": "custom", "definition": {}}
        assert session.post(f"{here}/graders", json=custom, headers=headers).status_code == 201
        calibrated(location, "four")
        other = {"kind": "declared", "definition": {**EXACT, "threshold": 0.9}}
        shown = session.put(f"{here}/graders/four?force=true", json=other, headers=headers).json()
        assert all(shown["calibration"][name] for name in ("kappa", "kappa_interval", "changed"))
        upload = session.post(
            f"{here}/datasets/arithmetic",
            data=json.dumps(ROW),
            headers={**headers, "Content-Type": "application/x-ndjson"},
        )
        assert upload.status_code == 201
        document = session.get(f"http://localhost{OPENAPI}", headers=headers).json()
        for operations in document["paths"].values():
            for operation in operations.values():
                operation.pop("security", None)  # every request here has a good key
        yield Fuzzed(document, schemathesis.openapi.from_dict(document), session, headers)
    # The library ends no lifespan before the process: who looks for jobs would look for ever.
    asgi._get_portal().call(context_of(app).stopping.set)


ENDLESS = "/api/v1/run-events"
"""It answers until the client goes: the fuzzer, after ten seconds. `test_runs` follows it."""

SHARES = 12
"""Of so many shares each is a test: to name operations, every worker would make the application."""


@pytest.mark.parametrize("share", range(SHARES))
def test_operations_answer_as_they_say(
    fuzzed: Fuzzed, share: int, subtests: pytest.Subtests
) -> None:
    paths = cast("dict[str, dict[str, Any]]", fuzzed.document["paths"])
    found = [(m, path) for path, methods in paths.items() for m in methods if path != ENDLESS]
    assert len(found) > 80
    for method, path in found[share::SHARES]:
        with subtests.test(f"{method} {path}"):
            _check(fuzzed, method, path)


def _check(fuzzed: Fuzzed, method: str, path: str) -> None:
    operation = fuzzed.schema[path][method.upper()]
    # Wrong input: tests/contract/test_operations.py.
    given_well = fuzzer().GenerationMode.POSITIVE

    @seed(1)
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=SLOW,
    )
    @given(case=operation.as_strategy(generation_mode=given_well), known=st.booleans())
    def run(case: Any, known: bool) -> None:  # noqa: FBT001 - hypothesis passes it by name
        if known:
            case.path_parameters.update(
                {name: value for name, value in KNOWN.items() if name in case.path_parameters}
            )
        case.call_and_validate(
            base_url="http://localhost",
            session=fuzzed.session,
            headers=fuzzed.headers,
            excluded_checks=_unfit(path),
        )

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run()


def test_every_body_has_an_example_and_every_record_and_operation_a_description(
    fuzzed: Fuzzed,
) -> None:
    schemas = cast("dict[str, dict[str, Any]]", fuzzed.document["components"]["schemas"])
    answered = set(_references(fuzzed.document["paths"]))
    assert len(answered) > 30
    for name in sorted(answered):
        if name.endswith("Body"):
            assert schemas[name].get("examples"), f"{name} has no example"
        assert schemas[name].get("description"), f"{name} says nothing"
    for path, operations in fuzzed.document["paths"].items():
        for method, operation in operations.items():
            assert operation.get("summary") or operation.get("description"), (method, path)
            told = {int(status) for status in operation["responses"]}
            assert {500} <= told, (method, path)
            if not path.startswith("/serve/"):
                assert any(status < 400 for status in told), (method, path)


def _references(part: object) -> Iterator[str]:
    """The schemas that requests and replies name."""
    if isinstance(part, dict):
        entries = cast("dict[str, object]", part)
        if isinstance(name := entries.get("$ref"), str):
            yield name.rpartition("/")[2]
        for entry in entries.values():
            yield from _references(entry)
    elif isinstance(part, list):
        for entry in cast("list[object]", part):
            yield from _references(entry)


def test_examples_are_what_their_schemas_allow(fuzzed: Fuzzed) -> None:
    import jsonschema_rs

    schemas = cast("dict[str, dict[str, Any]]", fuzzed.document["components"]["schemas"])
    for name, schema in schemas.items():
        whole = {**schema, "components": {"schemas": schemas}}
        validator = jsonschema_rs.Draft202012Validator(whole)
        for example in schema.get("examples", []):
            assert not list(validator.iter_errors(example)), (name, example)


def test_the_document_needs_no_key_and_names_no_machine(fuzzed: Fuzzed) -> None:
    answer = fuzzed.session.get(f"http://localhost{OPENAPI}", headers={"Host": "localhost"})
    assert answer.status_code == 200
    assert "/tmp" not in answer.text
    assert not Path("nowhere").exists(), "describing an application opens no database"
