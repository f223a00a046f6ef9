"""Agents that people install: where they are found, how they are started, what they are asked."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from assay.agents.presets import PRESETS, preset
from assay.agents.presets.declaration import started
from assay.store import Store
from assay.testing import FakeModel, through_shell
from assay.types.run import Run
from assay.types.trace import AgentStep, Step, ToolStep
from tests.command_line import assay, write_case
from tests.each import each


def program(path: Path, text: str = "#!/bin/sh\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


# --- Where they are found ------------------------------------------------------------------------


@each("name", PRESETS)
def test_a_preset_is_a_harness_that_asks_through_the_gateway(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    found = preset(name)
    file = program(tmp_path / "tools" / found.program)
    monkeypatch.setenv("ASSAY_HARNESS_PATH", str(file.parent))

    harness = found.find().harness()

    assert harness.gateway
    assert str(file) in harness.argv
    assert harness.mounts == (str(file),)
    if harness.acp:
        return  # it is told by its protocol
    (line,) = harness.commands(["-rf {x}"], model="m", workspace="/workspace", gateway="http://g")
    assert next(word for word in line if "-rf {x}" in word).partition("=")[2] in ("", "-rf {x}")
    # What begins like an option is none.
    assert line[-2] == "--" or line[-1].startswith(("--task=", "--message=", "--prompt="))


def test_a_project_s_own_program_comes_before_that_of_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    everywhere = program(tmp_path / "bin" / "codex")
    monkeypatch.setenv("PATH", str(everywhere.parent))
    own = program(tmp_path / "project" / "node_modules" / ".bin" / "codex")
    case = tmp_path / "project" / "evals" / "one"
    case.mkdir(parents=True)

    assert preset("codex").find(str(case)).program == str(own)
    assert preset("codex").find(str(tmp_path)).program == str(everywhere)

    named = program(tmp_path / "named" / "codex")
    monkeypatch.setenv("ASSAY_HARNESS_PATH", f"{tmp_path}/none{os.pathsep}{named.parent}")
    assert preset("codex").find(str(case)).program == str(named)


@pytest.mark.parametrize("beside", ["", "@openai/codex/node_modules/"])
def test_in_an_image_what_needs_no_interpreter_comes_before_a_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, beside: str
) -> None:
    packages = tmp_path / "node_modules"
    script = program(packages / ".bin" / "codex", "#!/usr/bin/env node\n")
    vendor = packages / f"{beside}@openai/codex-linux/vendor"
    native = program(vendor / f"{os.uname().machine}-unknown-linux-musl" / "bin" / "codex", "ELF")
    program(vendor / "of-another-machine" / "bin" / "codex", "ELF")
    monkeypatch.setenv("ASSAY_HARNESS_PATH", str(script.parent))

    ways = [way.harness() for way in preset("codex").for_image()]

    assert [way.argv[0] for way in ways] == ["codex", str(native), str(script)]
    assert [way.mounts for way in ways] == [(), (str(packages),), (str(packages),)]


def test_a_package_is_shown_with_those_beside_it(tmp_path: Path) -> None:
    packages = tmp_path / "lib" / "node_modules"
    program(packages / "codex" / "bin" / "codex.js", "#!/bin/sh\n")
    link = tmp_path / "bin" / "codex"
    link.parent.mkdir()
    link.symlink_to("../lib/node_modules/codex/bin/codex.js")

    # The link lies outside of what is shown.
    assert started(str(link)) == (
        (str(packages / "codex" / "bin" / "codex.js"),),
        (str(packages),),
    )


def test_an_interpreter_that_no_sandbox_has_is_shown_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = program(tmp_path / "nvm" / "bin" / "nöde")
    script = program(tmp_path / "node_modules" / ".bin" / "codex", "#!/usr/bin/env -S nöde\n")
    monkeypatch.setenv("PATH", str(node.parent))

    assert started(str(script)) == (
        (str(node), str(script)),
        (str(tmp_path / "node_modules"), str(node)),
    )


def test_a_virtual_environment_is_shown_with_its_python(tmp_path: Path) -> None:
    home = tmp_path / "mini"
    base = program(tmp_path / "python" / "bin" / "python3.11", "ELF")
    (home / "bin").mkdir(parents=True)
    (home / "pyvenv.cfg").write_text("")
    (home / "bin" / "python").symlink_to(base)
    script = program(home / "bin" / "mini", f"#!{home}/bin/python\n")
    link = tmp_path / "mini-link"
    link.symlink_to(script)

    argv, mounts = started(str(link))

    assert argv == (str(home / "bin" / "python"), str(script))
    assert mounts == (str(home), str(tmp_path / "python"))


def test_the_page_tells_of_every_preset() -> None:
    page = (Path(__file__).parents[2] / "docs" / "agents.md").read_text()

    for name in PRESETS:
        row = next(line for line in page.splitlines() if line.startswith(f"| `{name}` |"))
        assert preset(name).licence in row
        assert f"`{preset(name).install}`" in row or name.endswith("-acp")


def test_what_the_system_has_is_there_already() -> None:
    assert started("/usr/bin/env") == (("/usr/bin/env",), ())


# --- In a matrix ---------------------------------------------------------------------------------

_CASE = """
    id: sum
    task: {{prompt: "what is 2 + 2?"{more}}}
    matrix: {{harnesses: [{harness}], models: ["{model}"]}}
    graders:
      - {{type: command, cmd: "grep -q 4 answer.txt"}}
"""


def test_a_case_whose_agent_is_not_installed_is_not_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_case(tmp_path, _CASE.format(harness="codex", model="openai:gpt-5", more=""))

    def nowhere(*_: object, **__: object) -> None: ...

    monkeypatch.setattr("shutil.which", nowhere)

    assert assay("validate", "evals", cwd=tmp_path).returncode == 0
    done = assay("run", "evals", cwd=tmp_path)

    assert done.returncode == 2
    assert "harness 'codex': its program 'codex' is not installed here" in done.stderr
    assert "npm install -g @openai/codex; or name its directory in ASSAY_HARNESS_PATH" in (
        " ".join(done.stderr.split())
    )


def test_a_declared_harness_of_the_same_name_is_the_one_that_is_meant(tmp_path: Path) -> None:
    write_case(tmp_path, _CASE.format(harness="codex", model="any", more=""))
    (tmp_path / "evals" / "harnesses.yaml").write_text(
        "codex: {argv: [sh, -c, 'echo 4 > answer.txt']}"
    )

    assert assay("run", "evals", cwd=tmp_path).returncode == 0


@each("harness", ["mini-swe-agent", "mine"])
def test_turns_for_an_agent_that_cannot_go_on_are_refused(tmp_path: Path, harness: str) -> None:
    more = ', turns: ["and 3 + 3?"]'
    write_case(tmp_path, _CASE.format(harness=harness, model="any", more=more))
    (tmp_path / "evals" / "harnesses.yaml").write_text("mine: {argv: ['true']}")

    done = assay("validate", "evals", cwd=tmp_path)

    assert done.returncode == 2
    assert f"case 'sum' has turns, and harness '{harness}' cannot go on with its work" in (
        " ".join(done.stderr.split())
    )


def test_a_harness_of_one_s_own_goes_on_by_its_own_command(tmp_path: Path) -> None:
    more = ', turns: ["its {4}", "-n"]'
    write_case(tmp_path, _CASE.format(harness="mine", model="any", more=more))
    (tmp_path / "evals" / "harnesses.yaml").write_text(
        "mine:\n"
        "  argv: [sh, -c, 'echo \"$1\" > /tmp/kept', x, '{prompt}']\n"
        "  resume: [sh, -c, 'echo \"$1\" >> /tmp/kept; cp /tmp/kept answer.txt', x, '{prompt}']\n"
    )

    assert assay("run", "evals", cwd=tmp_path).returncode == 0


# --- Claude Code, by a program that speaks as it does --------------------------------------------

_CLAUDE = """#!%s
import json, os, sys, urllib.request, pathlib

options, prompt = sys.argv[1:-2], sys.argv[-1]
assert sys.argv[-2] == "--" and "stream-json" in options and "--verbose" in options, sys.argv
kept = pathlib.Path(os.environ["HOME"], "session.json")
messages = json.loads(kept.read_text()) if "--continue" in options else []
TOOL = {"name": "Bash", "input_schema": {"type": "object",
        "properties": {"command": {"type": "string"}}, "required": ["command"]}}


def line(**event):
    print(json.dumps({"session_id": "s", **event}), flush=True)


def ask():
    body = {"model": options[options.index("--model") + 1], "max_tokens": 100,
            "messages": messages, "tools": [TOOL]}
    headers = {"x-api-key": os.environ["ANTHROPIC_API_KEY"], "content-type": "application/json",
               "anthropic-version": "2023-06-01"}
    url = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages"
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    return json.load(urllib.request.urlopen(request))


line(type="system", subtype="init", model="claude")
messages.append({"role": "user", "content": prompt})
while True:
    said = ask()
    messages.append({"role": "assistant", "content": said["content"]})
    for block in said["content"]:
        line(type="assistant", message={**said, "content": [block]}, parent_tool_use_id=None)
    uses = [block for block in said["content"] if block["type"] == "tool_use"]
    if not uses:
        break
    results = []
    for use in uses:
        out = os.popen(use["input"]["command"]).read()
        results.append({"type": "tool_result", "tool_use_id": use["id"], "content": out})
        line(type="user", message={"role": "user", "content": results[-1:]})
    messages.append({"role": "user", "content": results})
kept.write_text(json.dumps(messages))
line(type="result", subtype="success", is_error=False, result=said["content"][-1]["text"],
     usage={"input_tokens": 1, "output_tokens": 1}, total_cost_usd=9.9)
"""


@pytest.fixture
def fake() -> Generator[FakeModel]:
    with FakeModel(through_shell("echo 4 > answer.txt", done="It is 4.")) as fake:
        yield fake


def played(
    root: Path, fake: FakeModel, harness: str = "claude-code", *, more: str = "", code: int = 0
) -> Run:
    """What came of a cell, whose agent is a program in ``tools``."""
    write_case(root, _CASE.format(harness=harness, model=fake.model, more=more))
    env = {"ASSAY_HARNESS_PATH": str(root / "tools")}
    done = assay("run", "evals", "--json", cwd=root, env=env)
    assert done.returncode == code, done.stdout + done.stderr
    with Store.open(str(root / ".assay")) as store:
        run = store.run("latest")
        (cell,) = store.cells(run.id)
        return Run.from_dict(store.detail(run.id, cell.key))


def test_claude_code_solves_through_the_gateway_and_goes_on(
    tmp_path: Path, fake: FakeModel
) -> None:
    program(tmp_path / "tools" / "claude", _CLAUDE % sys.executable)
    run = played(tmp_path, fake, more=', turns: ["Are you sure?"]')

    assert run.reward == 1.0
    assert run.grade.info.get("flags", []) == []
    assert run.trace.content == "It is 4."
    assert run.cost_usd is None  # what it says of itself is not what was paid
    kinds = [type(step) for step in run.trace.work]
    assert kinds == [Step, AgentStep, ToolStep, AgentStep, Step, AgentStep]
    assert [asked.model for asked in fake.requests] == ["fake-model"] * 3


def test_a_refusal_that_an_agent_tells_of_was_said(tmp_path: Path) -> None:
    program(tmp_path / "tools" / "claude", _CLAUDE % sys.executable)
    with FakeModel(["It is 4."], faults=["refusal"]) as fake:
        run = played(tmp_path, fake, code=1)

    assert (run.reward, run.trace.content) == (0.0, "I cannot help with that.")
    assert run.grade.info.get("flags", []) == []


def test_an_agent_that_never_asked_its_model_is_an_error_and_no_0(
    tmp_path: Path, fake: FakeModel
) -> None:
    text = "#!/bin/sh\necho no module for $OPENAI_API_KEY named litellm >&2\n"
    tools = program(tmp_path / "tools" / "mini", text)
    write_case(tmp_path, _CASE.format(harness="mini-swe-agent", model=fake.model, more=""))
    env = {"ASSAY_HARNESS_PATH": str(tools.parent)}

    done = assay("run", "evals", cwd=tmp_path, env=env)

    assert done.returncode == 3
    said = " ".join(done.stdout.split())
    assert (
        "harness 'mini-swe-agent' never asked its model: no module for (the gateway's token)"
        in said
    )


_AIDER = """#!%s
import json, os, pathlib, subprocess, sys, urllib.request

assert sys.argv[-1].startswith("--message="), sys.argv
known = subprocess.run(["git", "ls-files"], capture_output=True, text=True, check=True).stdout
body = json.dumps({"model": "m", "messages": [{"role": "user", "content": known}]}).encode()
headers = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
reply = json.load(urllib.request.urlopen(urllib.request.Request(url, body, headers)))
pathlib.Path("answer.txt").write_text(reply["choices"][0]["message"]["content"])
pathlib.Path(".aider.tags.cache.v4").mkdir()
print("Applied edit to answer.txt")
"""


def test_aider_knows_the_files_and_leaves_nothing_of_its_own(tmp_path: Path) -> None:
    tools = program(tmp_path / "tools" / "aider", _AIDER % sys.executable).parent
    with FakeModel(["It is 4.", "Still 4."]) as fake:
        more = ', turns: ["Sure?"]'
        text = _CASE.format(harness="aider", model=fake.model, more=more)
        text += """\
      - {type: command, cmd: "ls -A > seen; ! grep -e git -e cache seen"}
      - {type: command, cmd: "test -e .aider.conf.yml"}
    source: {path: ./source}
"""
        case = write_case(tmp_path, text)
        (case / "source").mkdir()
        for name in ("answer.txt", ".aider.conf.yml"):
            (case / "source" / name).write_text("{}\n")
        done = assay("run", "evals", cwd=tmp_path, env={"ASSAY_HARNESS_PATH": str(tools)})
        asked = [str(one.body) for one in fake.requests]

    assert done.returncode == 0, done.stdout + done.stderr
    assert len(asked) == len({"first", "second"})
    assert all("answer.txt" in one for one in asked)


def test_harnesses_lists_what_is_installed_and_how_to_install_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = program(tmp_path / "tools" / "codex", "#!/bin/sh\necho codex-cli 1.2.3\n").parent
    banner = "echo This is mini-swe-agent version 2.4.6.; echo No such option 1.0; exit 2"
    program(tools / "mini", f"#!/bin/sh\n{banner}\n")
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}/usr/bin{os.pathsep}/bin")

    done = assay("doctor", "agents", cwd=tmp_path)

    assert done.returncode == 0
    said = " ".join(done.stdout.split())
    assert f"ok codex 1.2.3 ({tools}/codex)" in said
    assert f"ok mini-swe-agent 2.4.6 ({tools}/mini)" in said, "it has no --version, and says it"
    assert "-- opencode not installed fix: npm install -g opencode-ai;" in said
