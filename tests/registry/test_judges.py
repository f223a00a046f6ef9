"""Stored judges: what they rest on, and which models they may ask."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from assay.errors import InputError
from assay.models import ModelClient, ModelSettings, using
from assay.registry import Definition, ValidationFailedError
from assay.registry.files import yaml_text
from assay.registry.policy import Permissions
from assay.scoring.json_safe import Json
from assay.store import Database
from assay.testing import FakeJudge
from assay.types.submission import Submission
from tests.each import each
from tests.grader_definitions import StoredGraders, changed, definition

URL = "http://127.0.0.1:9/v1#m"


def _declared(**options: Json) -> Definition:
    return definition("declared", graders=({"type": "llm_judge", "criteria": ["c"], **options},))


AT_URLS: list[Definition] = [
    definition("binary_judge", criteria="c", judge_model=URL),
    definition("binary_judge", criteria="c", judge_model="m", panel={"escalate": URL}),
    definition("prebuilt_judge", type="FAITHFULNESS", judge_model=f"anthropic+{URL}"),
    _declared(model=URL),
    _declared(models=["gpt-5", URL]),
    _declared(type="binary_judge", criteria="c", model=URL),
]


@each("definition", AT_URLS)
async def test_attack_a_stored_judge_makes_a_server_call_an_address(
    definition: Definition, database: Database
) -> None:
    registry = StoredGraders(database)
    with pytest.raises(ValidationFailedError, match="may not name the address of a model"):
        await registry.create("ssrf", definition)
    file = yaml_text({"kind": definition.kind, "definition": definition.to_dict()})
    with pytest.raises(ValidationFailedError, match="may not name the address of a model"):
        await registry.import_files({"ssrf.yaml": file})
    allowed = StoredGraders(database, permissions=Permissions(internal=True))
    await allowed.create("ssrf", definition)
    with pytest.raises(InputError, match="may not name the address of a model"):
        await registry.grade("ssrf", [("1", Submission(answer="hello world"))])
    registry.delete("ssrf")


async def test_a_model_of_the_settings_file_needs_no_permission(
    registry: StoredGraders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: Json = {"evidence": ["Paris"], "reasoning": "so", "score": "PASS"}
    file = tmp_path / "models.yaml"
    monkeypatch.setenv("ASSAY_MODELS", str(file))
    made = definition("binary_judge", criteria="It names Paris.", judge_model="local")
    with FakeJudge(lambda _: said) as fake:
        named: dict[str, Json] = {"base_url": fake.base_url, "protocol": "openai", "model": "fake"}
        file.write_text(json.dumps({"endpoints": {"local": named}}))
        with using(ModelClient(ModelSettings.from_environment())):
            await registry.create("named", made)
            (graded,) = await registry.grade("named", [("1", Submission(answer="It is Paris."))])
    assert graded.score == 1.0


def test_a_stored_judge_is_graded_by_what_is_stored() -> None:
    plain = definition("binary_judge", criteria="c", judge_model="m")
    (spec,) = plain.specs
    assert (spec.type, dict(spec.options)) == ("binary_judge", {"criteria": "c", "model": "m"})
    panel = {"repeats": 3, "aggregate": "mean"}
    full = changed(plain, few_shot=2, allow_na=True, panel=panel)
    asked = {"criteria": "c", "model": "m", "few_shot": 2, "allow_na": True}
    assert dict(full.specs[0].options) == {**asked, **panel}
    for kind in ("FAITHFULNESS", "CONTEXT_RELEVANCY", "ANSWER_RELEVANCY"):
        (spec,) = definition("prebuilt_judge", type=kind, judge_model="m").specs
        assert (spec.type, dict(spec.options)) == (kind.lower(), {"model": "m"})
