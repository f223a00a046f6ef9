"""OpenAI's two grader endpoints, called by its own client over a real connection."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

import pytest
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from assay.errors import InputError
from assay.interop.openai_api import check_grader, run_grader
from assay.scoring.json_safe import Json
from assay.types.codec import ShapeError
from tests.each import each
from tests.endpoint_servers import serving

if TYPE_CHECKING:
    import openai  # noqa: TC004 - imported by a fixture
    from openai.types.fine_tuning.alpha import GraderRunResponse


@pytest.fixture(autouse=True, scope="module")
def importing() -> None:
    """Seconds, for those who only collect, too."""
    globals()["openai"] = importlib.import_module("openai")


CHECK: dict[str, Json] = {
    "type": "string_check",
    "name": "match",
    "input": "{{ sample.output_json.city }}",
    "reference": "{{ item.answer }}",
    "operation": "eq",
}
SIMILAR: dict[str, Json] = {
    "type": "text_similarity",
    "name": "close",
    "input": "{{ sample.output_text }}",
    "reference": "{{ item.answer }}",
    "evaluation_metric": "fuzzy_match",
}
MULTI: dict[str, Json] = {
    "type": "multi",
    "name": "both",
    "graders": {"right": CHECK, "close": SIMILAR},
    "calculate_output": "2 * right + close",
}
JUDGE: dict[str, Json] = {
    "type": "score_model",
    "name": "quality",
    "model": "o4-mini",
    "input": [{"role": "user", "content": "{{ sample.output_text }}"}],
}


def python(body: str) -> dict[str, Json]:
    source = f"def grade(sample, item):\n    {body}\n"
    return {"type": "python", "name": "code", "source": source}


def _app() -> FastAPI:
    app = FastAPI()

    async def answer(request: Request) -> JSONResponse:
        body = cast("Mapping[str, Json]", await request.json())
        try:
            if request.url.path.endswith("/run"):
                return JSONResponse(await run_grader(body))
            return JSONResponse(await check_grader(body))
        except InputError as error:
            return JSONResponse({"error": {"message": str(error), "type": "bad"}}, status_code=400)

    for name in ("run", "validate"):
        app.add_api_route(f"/v1/fine_tuning/alpha/graders/{name}", answer, methods=["POST"])
    return app


@pytest.fixture(scope="module")
def client(importing: None) -> Iterator[openai.OpenAI]:
    with (
        serving(_app()) as url,
        openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=5) as opened,
    ):
        yield opened


def run(
    client: openai.OpenAI, grader: Mapping[str, Json], said: str, item: Json = None
) -> GraderRunResponse:
    asked: Any = {"grader": grader, "model_sample": said} | ({"item": item} if item else {})
    return client.fine_tuning.alpha.graders.run(**asked)


def test_a_grader_runs(client: openai.OpenAI) -> None:
    answer = run(client, CHECK, '{"city": "Paris"}', {"answer": "Paris"})
    assert answer.reward == 1.0
    assert answer.sub_rewards == {}
    assert (answer.metadata.name, answer.metadata.type) == ("match", "string_check")
    assert answer.metadata.execution_time > 0
    assert answer.metadata.scores == {}
    assert not any(answer.metadata.errors.model_dump().values())


async def test_the_envelope_has_the_fields_that_the_client_knows() -> None:
    from openai.types.fine_tuning.alpha import GraderRunResponse
    from openai.types.fine_tuning.alpha.grader_run_response import Metadata, MetadataErrors

    body: dict[str, Json] = {"grader": SIMILAR, "model_sample": "x", "item": {"answer": "x"}}
    answer = await run_grader(body)
    assert set(answer) == _fields(GraderRunResponse)
    metadata = cast("dict[str, dict[str, Json]]", answer["metadata"])
    assert set(metadata) == _fields(Metadata)
    assert set(metadata["errors"]) == _fields(MetadataErrors)


def _fields(model: type[BaseModel]) -> set[str]:
    return {field.alias or name for name, field in model.model_fields.items()}


def test_a_formula_keeps_its_parts_and_its_scale(client: openai.OpenAI) -> None:
    answer = run(client, MULTI, '{"city": "Paris"}', {"answer": "Paris"})
    assert answer.sub_rewards["right"] == 1.0
    assert answer.reward == pytest.approx(2 + cast("float", answer.sub_rewards["close"]))
    assert answer.metadata.scores == answer.sub_rewards


def test_a_missing_variable_is_flagged(client: openai.OpenAI) -> None:
    answer = run(client, SIMILAR, "Paris")
    assert (answer.reward, answer.metadata.errors.invalid_variable_error) == (0.0, True)
    answer = run(client, CHECK, "no json", {"answer": "Paris"})
    assert answer.metadata.errors.invalid_variable_error
    assert not answer.metadata.errors.other_error


@pytest.mark.sandbox
def test_python_runs_and_its_failures_are_flagged(client: openai.OpenAI) -> None:
    code = python("return len(sample['output_text']) / 4 + item['n']")
    answer = run(client, code, "ab", {"n": 1})
    assert answer.reward == 1.5
    assert answer.metadata.type == "python"
    errors = run(client, python("return item['nope']"), "ab").metadata.errors
    assert errors.python_grader_runtime_error
    assert "KeyError" in str(errors.python_grader_runtime_error_details)


def test_validate_gives_the_grader_back(client: openai.OpenAI) -> None:
    for grader in (CHECK, SIMILAR, MULTI, JUDGE, python("return 1.0")):
        asked = cast("Any", grader)
        answer = client.fine_tuning.alpha.graders.validate(grader=asked)
        assert answer.grader is not None
        assert answer.grader.model_dump(exclude_unset=True) == grader


def test_a_bad_grader_is_a_bad_request(client: openai.OpenAI) -> None:
    asked = cast("Any", {**CHECK, "operation": "equals"})
    with pytest.raises(openai.BadRequestError, match=r"grader\.operation: 'equals' is not valid"):
        client.fine_tuning.alpha.graders.validate(grader=asked)
    with pytest.raises(openai.BadRequestError, match="needs a judge model"):
        run(client, JUDGE, "x")


@each(
    ("body", "path", "message"),
    [
        ({}, "grader", "is required"),
        ({"grader": CHECK}, "model_sample", "expected text"),
        ({"grader": CHECK, "model_sample": {"a": 1}}, "model_sample", "expected text"),
        ({"grader": CHECK, "model_sample": "x", "item": []}, "item", "expected an object"),
        ({"grader": CHECK, "model_sample": "x", "itme": {}}, "itme", "unknown field"),
        ({"grader": "x", "model_sample": "x"}, "grader", "a grader is an object"),
        ({"grader": {"name": "x"}, "model_sample": "x"}, "grader.type", "is required"),
        (
            {"grader": {**MULTI, "calculate_output": "right +"}, "model_sample": "x"},
            "grader.calculate_output",
            r"ends too early \(column 8\)",
        ),
        (
            {"grader": {**python(""), "source": None, "file": "/etc/passwd"}, "model_sample": "x"},
            "grader.file",
            "unknown field",
        ),
    ],
)
async def test_a_bad_body_is_refused_with_its_path(
    body: dict[str, Json], path: str, message: str
) -> None:
    with pytest.raises(ShapeError, match=message) as caught:
        await run_grader(body)
    assert caught.value.problems[0].field == path


@each(
    "grader",
    [
        JUDGE,
        {**MULTI, "graders": {"right": CHECK, "close": JUDGE}},
        {**SIMILAR, "evaluation_metric": "cosine"},
    ],
)
async def test_what_needs_a_model_is_refused_and_no_zero(grader: dict[str, Json]) -> None:
    with pytest.raises(InputError, match="cannot run: it needs"):
        await run_grader({"grader": grader, "model_sample": "x", "item": {"answer": "x"}})


async def test_attack_a_formula_of_very_many_graders_is_refused_by_their_number() -> None:
    many: Json = {"type": "multi", "graders": {f"g{n}": {} for n in range(60_000)}}
    with pytest.raises(InputError, match=r"^grader\.graders: there are 60000 \(from 1 to 100\)$"):
        await check_grader({"grader": many})


async def test_a_formula_without_a_value_is_flagged_with_its_parts() -> None:
    grader: Json = {**MULTI, "calculate_output": "close / right"}
    item: Json = {"answer": "Paris"}
    answer = await run_grader({"grader": grader, "model_sample": '{"city": "Rome"}', "item": item})
    metadata = cast("dict[str, dict[str, Json]]", answer["metadata"])
    assert (answer["reward"], metadata["errors"]["other_error"]) == (0.0, True)
    assert cast("dict[str, Json]", answer["sub_rewards"])["right"] == 0.0
