"""Cases: what a YAML case may say, what is refused and where; the schema for editors agrees."""

from __future__ import annotations

import copy
import json
from contextlib import nullcontext
from pathlib import Path
from typing import cast

import jsonschema_rs
import pytest
import yaml

from assay.documents import DocumentError
from assay.errors import Location
from assay.scoring.json_safe import Json
from assay.tasks.blocks import NO_MATRIX
from assay.tasks.case import case_schema, load_case, load_cases
from assay.types.codec import ShapeError
from tests.each import each
from tests.written_files import write_files
from tests.wrong_input import Place, mistakes

COMMIT = "0123456789abcdef0123456789abcdef01234567"

MINIMAL: dict[str, Json] = {
    "id": "c1",
    "task": {"prompt": "Fix it."},
    "matrix": {"harnesses": ["echo"], "models": ["m"]},
    "graders": [{"type": "command", "cmd": "true"}],
}

FULL = """\
# yaml-language-server: $schema=case.schema.json
id: full-1
description: Everything that a case may say.
task:
  prompt: |
    Fix the bug.
  system_prompt: Be brief.
  instruction_files: [AGENTS.md]
  turns: [Now document it.]
source: {path: ./source, isolation: copy}
artifacts:
  skills: [./skills]
  commands: [./skills/a.md]
  plugins: [./skills]
  mcp: ./mcp.json
matrix:
  entries:
    - {harness: claude-code, models: [opus, sonnet]}
    - {harness: echo, models: [none]}
  trials: 2
environment:
  kind: uv
  venv: true
  system_site_packages: false
  requirements: [pytest==8.3.4]
  requirement_files: [requirements.txt]
  install: editable
  pip_args: [--no-deps]
  commands: [make]
  env: {LANG: C}
  timeout_s: 60
container:
  image: python:3.12
  setup: [apt-get update]
  python: python3
  home: /root
  caches: [.cache/pip]
setup:
  stub: [{file: pkg/a.py, function: solve}]
  run: [make data]
observe:
  tracing: false
  interaction: {policy: scripted, rules: [{name: x, decision: allow}]}
graders:
  - {type: command, cmd: make test, weight: 2.0}
  - {type: files, expect_dir: ./graders/expected, patterns: [retry]}
  - {type: command, cmd: make lint, gate: true, name: lint}
expect: {pass_threshold: 0.8}
availability: optional
limits: {agent_timeout_s: 60, grading_timeout_s: 30.5, network: true}
expected: {answer: [1, 2]}
metadata: {origin: 2026-11-21}
"""


def write_case(folder: Path, data: dict[str, Json] | str) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "case.yaml"
    file.write_text(data if isinstance(data, str) else yaml.safe_dump(data, sort_keys=False))
    return str(file)


def write_full(folder: Path) -> str:
    names = ("AGENTS.md", "mcp.json", "requirements.txt", "source/a.py", "skills/a.md")
    write_files(folder, dict.fromkeys(names, "x"))
    (folder / "graders" / "expected").mkdir(parents=True)
    return write_case(folder, FULL)


def changed(**blocks: Json) -> dict[str, Json]:
    """The minimal case with some blocks replaced; None takes a block out."""
    data = {**copy.deepcopy(MINIMAL), **blocks}
    return {key: block for key, block in data.items() if block is not None}


def lines_of(error: pytest.ExceptionInfo[DocumentError]) -> list[str]:
    return str(error.value).splitlines()


def test_a_minimal_case_has_the_documented_defaults(tmp_path: Path) -> None:
    case = load_case(write_case(tmp_path / "c1", MINIMAL))
    assert (case.id, case.description, case.availability) == ("c1", "", "required")
    assert (case.task.prompt, case.source_path, case.expect.pass_threshold) == (
        "Fix it.",
        None,
        1.0,
    )
    limits = (case.limits.agent_timeout_s, case.limits.grading_timeout_s, case.limits.network)
    assert limits == (1800.0, 600.0, False)
    assert case.root == str(tmp_path / "c1")
    assert case.harnesses_file == ""
    assert [spec.type for spec in case.graders] == ["command"]
    bare = load_case(write_case(tmp_path / "bare", changed(matrix=None)))
    assert bare.matrix == NO_MATRIX, "it is for whoever names a model"


def test_a_full_case_says_what_was_written(tmp_path: Path) -> None:
    case = load_case(write_full(tmp_path / "c"))
    assert case.instruction_files == (str(tmp_path / "c" / "AGENTS.md"),)
    assert case.source_path == str(tmp_path / "c" / "source")
    assert case.requirement_files == (str(tmp_path / "c" / "requirements.txt"),)
    assert case.environment is not None
    assert case.environment.env == {"LANG": "C"}
    assert case.container is not None
    assert case.container.image == "python:3.12"
    assert case.setup is not None
    assert case.setup.stub[0].function == "solve"
    assert case.observe is not None
    assert case.observe.tracing is True, "an interaction needs a trace"
    assert case.limits.network is True
    assert case.expected == {"answer": [1, 2]}
    assert case.metadata == {"origin": "2026-11-21"}
    assert [(spec.label, spec.gate) for spec in case.graders] == [
        ("command", False),
        ("files", False),
        ("lint", True),
    ]


def test_pairs_of_a_matrix_are_as_written(tmp_path: Path) -> None:
    case = load_case(write_full(tmp_path / "c"))
    assert case.matrix.pairs()[:2] == (("claude-code", "opus"), ("claude-code", "sonnet"))
    assert (len(case.matrix.pairs()), case.matrix.trials) == (3, 2)
    matrix = {"harnesses": ["h1", "h2"], "models": ["a/b", "a-b"]}
    product = load_case(write_case(tmp_path / "p", changed(matrix=cast("Json", matrix)))).matrix
    assert product.pairs() == (("h1", "a/b"), ("h1", "a-b"), ("h2", "a/b"), ("h2", "a-b"))


H: Json = ["echo"]
REFUSED: dict[str, tuple[dict[str, Json], str, str]] = yaml.safe_load(
    r"""
empty id: [{id: ''}, id, not empty]
padded id: [{id: ' c1'}, id, no space around]
newline in id: [{id: 'a

    b'}, id, no control characters]
blank prompt: [{task: {prompt: ' '}}, task.prompt, empty]
blank turn: [{task: {prompt: x, turns: ['']}}, 'task.turns[0]', is empty]
missing instructions:
  [{task: {prompt: x, instruction_files: [A.md]}},
   'task.instruction_files[0]', '''A.md'' does not exist']
a directory as instructions:
  [{task: {prompt: x, instruction_files: [.]}}, 'task.instruction_files[0]', is not a file]
nul in a path:
  [{task: {prompt: x, instruction_files: ["a\0b"]}}, 'task.instruction_files[0]', does not exist]
endless path: [{source: {path: LONG}}, source.path, does not exist]
no origin: [{source: {}}, source, none is given]
two origins: [{source: {path: ., pypi: a==1}}, source, both path and pypi are given]
missing source: [{source: {path: ./s}}, source.path, '''./s'' does not exist']
source is a file: [{source: {path: case.yaml}}, source.path, not a directory]
source holds the case: [{source: {path: .}}, source.path, the case itself]
source holds the evals: [{source: {path: ../..}}, source.path, the case itself]
git without commit: [{source: {git: 'https://h/r'}}, source.commit, a git source needs a commit]
a branch as commit:
  [{source: {repo: 'https://h/r', commit: main}}, source.commit, '''main'' is not a commit id']
an option as commit:
  [{source: {git: 'https://h/r', commit: --upload-pack=id}}, source.commit, is not a commit id]
an option as url:
  [{source: {git: --upload-pack=id, commit: COMMIT}}, source.git, is not a repository address]
a command as url:
  [{source: {git: 'ext::sh -c id', commit: COMMIT}}, source.git, may not use the protocol 'ext']
a strange protocol:
  [{source: {git: 'ftp://h/r', commit: COMMIT}}, source.git, may not use the protocol 'ftp']
commit of a path:
  [{source: {path: .., commit: COMMIT}}, source.commit, only a git source takes a commit]
subdir leads out:
  [{source: {git: 'https://h/r', commit: COMMIT, subdir: ../x}},
   source.subdir, does not stay inside]
worktree of a package:
  [{source: {pypi: x==1, isolation: worktree}}, source.isolation, worktree needs a path]
missing skill: [{artifacts: {skills: [./s]}}, 'artifacts.skills[0]', '''./s'' does not exist']
a user without a persona:
  [{task: {prompt: p, user: {persona: ' '}}}, task.user.persona, the persona is empty]
a user who never speaks:
  [{task: {prompt: p, user: {persona: p, most_turns: 0}}}, task.user.most_turns, must be at least 1]
empty matrix: [{matrix: {}}, matrix, the matrix is empty]
both matrices:
  [{matrix: {harnesses: [echo], models: [echo], entries: [{harness: e, models: [echo]}]}},
   matrix, not both]
the same model twice:
  [{matrix: {harnesses: [echo], models: [m, m]}}, 'matrix.models[1]', is there twice]
the same pair twice:
  [{matrix: {entries: [{harness: e, models: [echo]}, {harness: e, models: [echo]}]}},
   'matrix.entries[1].models[0]', already in the matrix]
command without commands: [{environment: {kind: command}}, environment.commands, needs commands]
command with requirements:
  [{environment: {kind: command, commands: [x], requirements: [y]}},
   environment.requirements, takes no requirements]
not a valid variable name:
  [{environment: {kind: uv, env: {A=B: '1'}}}, environment.env.A=B, is not a valid variable name]
cache leads out:
  [{container: {image: i, caches: [../.ssh]}}, 'container.caches[0]', does not stay inside]
image is an option: [{container: {image: --privileged}}, container.image, has no name]
workspace over the system:
  [{container: {image: i, workdir: /etc}}, container.workdir, the workspace cannot be /etc]
workdir leads up:
  [{container: {image: i, workdir: /app/../etc}}, container.workdir, not a plain absolute path]
image beside an installer:
  [{environment: {container: i, requirements: [pytest]}},
   environment.requirements, a container takes no requirements]
stub leads out:
  [{setup: {stub: [{file: /etc/x.py, function: f}]}}, 'setup.stub[0].file', does not stay inside]
misspelt policy:
  [{observe: {interaction: {policy: auto-aprove}}},
   observe.interaction.policy, 'did you mean ''auto-approve''?']
an empty list of graders: [{graders: []}, graders, there are no graders]
only gates: [{graders: [{type: command, cmd: x, gate: true}]}, graders, no grader adds credit]
only penalties: [{graders: [{type: command, cmd: x, weight: -1.0}]}, graders, no grader adds credit]
missing rubric:
  [{graders: [{type: model_judge, rubric: ./r.md}]}, 'graders[0].rubric', does not exist]
missing hidden test:
  [{graders: [{type: pytest, inject: [./hidden/t.py]}]}, 'graders[0].inject[0]', does not exist]
unknown block: [{grader: []}, grader, 'did you mean ''graders''?']
fixtures named by a leading id:
  [{id: ../x, fixtures: {repo: 'https://h/r', commit: COMMIT}}, id, does not stay inside]
""".replace("COMMIT", COMMIT).replace("LONG", "x" * 9999)
)
"""What no schema knows, and what is said of it; all other mistakes are made from the schema."""


@pytest.mark.parametrize("name", list(REFUSED))
def test_a_wrong_case_is_refused_with_place_and_fix(name: str, tmp_path: Path) -> None:
    blocks, field, expected = REFUSED[name]
    file = write_case(tmp_path / "evals" / "c1", changed(**blocks))
    with pytest.raises(DocumentError) as caught:
        load_case(file)
    found = [fault for fault in caught.value.faults if fault.location.field == field]
    assert found, str(caught.value)
    assert expected in str(found[0])
    assert str(found[0]).startswith(f"{file}:")
    assert found[0].location.line


SCHEMA = cast("dict[str, dict[str, dict[str, Json]]]", case_schema())
RIGHT = {name: block for name, block in yaml.safe_load(FULL).items() if name != "metadata"}
BLOCKS = sorted(SCHEMA["properties"].keys() - {"$schema"})


@pytest.mark.parametrize("block", BLOCKS)
def test_whatever_no_block_can_be_is_refused_with_its_place(block: str, tmp_path: Path) -> None:
    write_full(tmp_path)
    needed = [block] if block in SCHEMA["required"] else []
    schema = {**SCHEMA, "properties": {block: SCHEMA["properties"][block]}, "required": needed}
    right = {block: RIGHT[block]} if block in RIGHT else {}
    for place, wrong in mistakes(cast("dict[str, Json]", schema), right):
        if place[:1] != (block,) or (block == "graders" and len(place) > 1):
            continue  # what a grader can be, is asked of each kind
        if place == ("source", "commit"):
            continue  # empty, it is none
        other = changed(**{block: None})
        file = write_case(tmp_path, json.dumps({**other, **cast("dict[str, Json]", wrong)}))
        with pytest.raises(DocumentError) as caught:
            load_case(file)
        assert any(_is_of(fault.location, place) for fault in caught.value.faults), (place, wrong)


def _is_of(location: Location, place: Place) -> bool:
    """Whether a fault names a place, or all of what cannot stand together with it."""
    dotted = "".join(f"[{one}]" if isinstance(one, int) else f".{one}" for one in place)[1:]
    named = location.field or ""
    return bool(location.line) and (named.startswith(dotted) or named in {"source", "matrix"})


def test_all_faults_of_all_cases_are_reported_together(tmp_path: Path) -> None:
    write_case(tmp_path / "evals" / "a", changed(id="", graders=[{"type": "commnd"}], x=1))
    write_case(tmp_path / "evals" / "b", "id: [")
    write_case(tmp_path / "evals" / "c", MINIMAL)
    with pytest.raises(DocumentError) as caught:
        load_cases([str(tmp_path), str(tmp_path / "nowhere")])
    text = str(caught.value)
    for expected in (
        "a/case.yaml:1:5: id:",
        "graders[0].type",
        ": x: unknown field",
        "b/case.yaml:",
        "nowhere: does not exist",
    ):
        assert expected in text


def test_ids_must_be_unique_and_both_files_are_named(tmp_path: Path) -> None:
    first = write_case(tmp_path / "a", MINIMAL)
    second = write_case(tmp_path / "b", MINIMAL)
    with pytest.raises(DocumentError) as caught:
        load_cases([str(tmp_path)])
    assert lines_of(caught) == [
        f"{second}:1:5: id: the id 'c1' is already that of {first} (ids must be unique)"
    ]


@pytest.mark.parametrize(
    ("given", "files"),
    [
        ("evals", ["evals/b/case.yaml", "evals/a/case.yaml"]),
        (".", ["./evals/b/case.yaml", "./evals/a/case.yaml"]),
        ("evals/b", ["evals/b/case.yaml"]),
        ("evals/b/case.yaml", ["evals/b/case.yaml"]),
    ],
)
def test_cases_are_found_in_every_form_of_path(
    given: str, files: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_case(tmp_path / "evals" / "b", changed(id="1"))
    write_case(tmp_path / "evals" / "a", changed(id="2"))
    (tmp_path / "evals" / "no-case").mkdir()
    (tmp_path / "evals" / "README.md").write_text("x")
    monkeypatch.chdir(tmp_path)
    cases = load_cases([given])
    assert [case.id for case in cases] == ["1", "2"][: len(files)]
    assert [case.file for case in cases] == files


def test_a_directory_holds_one_case_or_more_each_of_which_is_read_once(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="holds no case"):
        load_cases([str(tmp_path)])
    file = write_case(tmp_path / "a", MINIMAL)
    assert len(load_cases([file, str(tmp_path), str(tmp_path / "a")])) == 1
    write_case(tmp_path / "b", changed(id="c2"))
    with pytest.raises(DocumentError, match="holds 2 cases, not one"):
        load_case(str(tmp_path))


def test_a_case_may_be_json(tmp_path: Path) -> None:
    (tmp_path / "case.json").write_text(
        '{"$schema": "case.schema.json", "id": "j", '
        '"task": {"prompt": "\\ud83d\\ude00"}, "matrix": '
        '{"harnesses": ["e"], "models": ["m"]}, '
        '"graders": [{"type": "command", "cmd": "x"}]}'
    )
    assert load_case(str(tmp_path)).task.prompt == "😀"


def test_a_link_that_secretly_leads_out_of_the_case_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secrets").mkdir()
    folder = tmp_path / "evals" / "c1"
    folder.mkdir(parents=True)
    (folder / "source").symlink_to(tmp_path / "secrets")
    file = write_case(folder, changed(source={"path": "./source"}))
    with pytest.raises(DocumentError, match="is a link that leads out of the case"):
        load_case(file)
    said_openly = write_case(folder, changed(source={"path": "../../secrets"}))
    assert load_case(said_openly).source_path == str(tmp_path / "secrets")


def test_injected_files_of_fixtures_are_bound_when_they_are_there(tmp_path: Path) -> None:
    inject: Json = ["hidden/t.py", {"src": "hidden/u.py", "dest": "tests/u.py"}]
    graders: Json = [{"type": "pytest", "inject": inject}]
    fixtures: Json = {"repo": "https://h/r", "commit": COMMIT}
    file = write_case(tmp_path / "c", changed(graders=graders, fixtures=fixtures))
    case = load_case(file)
    assert case.graders[0].options["inject"] == inject
    there = tmp_path / "fetched"
    with pytest.raises(ShapeError, match="does not exist"):
        case.with_fixtures(str(there))
    (there / "hidden").mkdir(parents=True)
    (there / "hidden" / "t.py").touch()
    (there / "hidden" / "u.py").touch()
    bound = case.with_fixtures(str(there)).graders[0].options["inject"]
    assert bound == [
        str(there / "hidden" / "t.py"),
        {"src": str(there / "hidden" / "u.py"), "dest": "tests/u.py"},
    ]
    wrong: Json = [{"type": "pytest", "inject": 5}]
    with pytest.raises(DocumentError, match=r"graders\[0\].inject"):
        load_case(write_case(tmp_path / "w", changed(graders=wrong, fixtures=fixtures)))


def test_attack_a_rate_of_trials_that_pass_for_nothing(tmp_path: Path) -> None:
    file = tmp_path / "case.yaml"
    for rate in ("pass_rate: 0.5", "pass_at_k: {k: 2, rate: 0.5}", "pass_hat_k: {k: 2, rate: 1}"):
        file.write_text(
            "id: kit\ntask: {prompt: Solve it.}\ngraders: [{type: exact_match, expected: a}]\n"
            f"expect: {{pass_threshold: 0, {rate}}}\n"
        )
        with pytest.raises(DocumentError, match="no rate can be missed") as error:
            load_case(str(file))
        assert "expect.pass_threshold" in str(error.value)


# The JSON Schema for editors

VALID: dict[str, dict[str, Json]] = {
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
_ENTRIES: Json = [{"harness": "e", "models": ["m"]}]
INVALID: dict[str, dict[str, Json]] = {
    "unknown grader": {"graders": [{"type": "commnd"}]},
    "no origin": {"source": {}},
    "no commit": {"source": {"git": "https://h/r"}},
    "branch": {"source": {"git": "https://h/r", "commit": "main"}},
    "unpinned": {"source": {"pypi": "x"}},
    "both": {"matrix": {"harnesses": ["e"], "models": ["m"], "entries": _ENTRIES}},
    "no models": {"matrix": {"harnesses": ["e"]}},
}
"""What needs another document than the one whose places are made wrong one by one."""


_VALIDATOR = jsonschema_rs.validator_for(SCHEMA)


@each(
    ("name", "blocks", "is_right"),
    [(n, b, right) for some, right in ((VALID, True), (INVALID, False)) for n, b in some.items()],
)
def test_schema_and_loader_agree(
    name: str, blocks: dict[str, Json], *, is_right: bool, tmp_path: Path
) -> None:
    data = {**MINIMAL, **blocks}
    file = write_case(tmp_path, data)
    with nullcontext() if is_right else pytest.raises(DocumentError):
        load_case(file)
    assert _VALIDATOR.is_valid(data) is is_right, name


def test_the_schema_is_one_and_every_field_is_described() -> None:
    schema = cast("dict[str, Json]", SCHEMA)
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
    submission = cast("dict[str, dict[str, dict[str, str]]]", SCHEMA["properties"]["submission"])
    said = submission["properties"]["on_suspicion"]["description"]
    assert said.startswith("What happens where the audit")
    assert said.endswith("gives 0.")
