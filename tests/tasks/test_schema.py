"""The JSON Schema for editors agrees with the loader."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import cast

import jsonschema_rs
import pytest
import yaml

from assay.documents import DocumentError
from assay.scoring.json_safe import Json
from assay.tasks.case import case_schema, load_case

COMMIT = "0123456789abcdef0123456789abcdef01234567"

BASE: dict[str, Json] = {
    "id": "c1",
    "task": {"prompt": "Fix it."},
    "matrix": {"harnesses": ["echo"], "models": ["m"]},
    "graders": [{"type": "command", "cmd": "true"}],
}

RIGHT: dict[str, dict[str, Json]] = {
    "minimal": {},
    "schema": {"$schema": "https://example.com/case.json"},
    "git": {"source": {"git": "https://h/r", "commit": COMMIT, "subdir": "a"}},
    "repo": {"source": {"repo": "https://h/r", "commit": "0123456"}},
    "pypi": {"source": {"pypi": "x==1.0", "sha256": "a" * 64}},
    "entries": {"matrix": {"entries": [{"harness": "e", "models": ["m"]}], "trials": 3}},
    "environment": {"environment": {"kind": "uv", "requirements": ["x"], "timeout_s": 9}},
    "nothing": {"source": None, "environment": None, "observe": None},
    "observe": {"observe": {"interaction": {"policy": "manual"}}},
    "limits": {"limits": {"network": True, "agent_timeout_s": 0.5}},
    "expected": {"expected": [1, {"a": None}], "metadata": {"a": [True]}},
    "gate": {
        "graders": [
            {"type": "command", "cmd": "a", "gate": True},
            {"type": "command", "cmd": "b", "weight": 0.5, "name": "b", "timeout_s": 5},
        ]
    },
}

WRONG: dict[str, dict[str, Json]] = {
    "unknown grader": {"graders": [{"type": "commnd"}]},
    "no origin": {"source": {}},
    "no commit": {"source": {"git": "https://h/r"}},
    "branch": {"source": {"git": "https://h/r", "commit": "main"}},
    "unpinned": {"source": {"pypi": "x"}},
    "both": {
        "matrix": {
            "harnesses": ["e"],
            "models": ["m"],
            "entries": [{"harness": "e", "models": ["m"]}],
        }
    },
    "no models": {"matrix": {"harnesses": ["e"]}},
}
"""What needs another document than the one whose places `test_case` makes wrong one by one."""


def loads(data: dict[str, Json], folder: Path) -> bool:
    (folder / "case.yaml").write_text(yaml.safe_dump(data))
    try:
        load_case(str(folder))
    except DocumentError:
        return False
    return True


@pytest.mark.parametrize(
    ("name", "right"), [*((n, True) for n in RIGHT), *((n, False) for n in WRONG)]
)
def test_schema_and_loader_agree(name: str, *, right: bool, tmp_path: Path) -> None:
    data = {**copy.deepcopy(BASE), **(RIGHT if right else WRONG)[name]}
    assert loads(data, tmp_path) is right
    assert jsonschema_rs.is_valid(case_schema(), data) is right


def test_the_schema_is_one_and_every_field_is_described() -> None:
    schema = case_schema()
    jsonschema_rs.meta.validate(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    undescribed: list[str] = []

    def walk(place: Json, path: str) -> None:
        if not isinstance(place, dict) or path.endswith(".graders"):
            return
        for name, inner in cast("dict[str, Json]", place.get("properties", {})).items():
            if name != "$schema" and "description" not in cast("dict[str, Json]", inner):
                undescribed.append(f"{path}.{name}")
            walk(inner, f"{path}.{name}")
        for option in cast("list[Json]", place.get("anyOf", [])):
            walk(option, path)
        walk(place.get("items"), path)

    walk(schema, "")
    assert undescribed == []


def test_a_description_is_whole_where_one_of_its_lines_looks_like_a_field() -> None:
    properties = cast(
        "dict[str, dict[str, dict[str, dict[str, str]]]]", case_schema()["properties"]
    )
    said = properties["submission"]["properties"]["on_suspicion"]["description"]
    assert said.startswith("What happens where the audit")
    assert said.endswith("gives 0.")
