"""A case whose cells have something of all: tests, a judge, a sign, steps, files and diffs."""

from __future__ import annotations

import json
from pathlib import Path

from tests.command_line import assay, write_case
from tests.written_files import write_files

__all__ = ["HOSTILE", "PROMPT", "STEPS", "run_repair", "write_repair"]

PROMPT = "Mend kit.py, so that it says 2."
HOSTILE = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
"""What a page that shows it as anything but text would act on."""

STEPS = (
    {
        "type": "step",
        "messages": ["Be brief."],
        "started_at": "2026-11-23T06:00:00.000+00:00",
        "ended_at": "2026-11-23T06:00:00.000+00:00",
    },
    {
        "type": "agent",
        "reasoning": f"Look first. {HOSTILE}",
        "content": "I look at the file.",
        "usage": {"prompt_tokens": 900, "completion_tokens": 40, "cost_usd": 0.004},
        "started_at": "2026-11-23T06:00:00.000+00:00",
        "ended_at": "2026-11-23T06:00:02.000+00:00",
    },
    {
        "type": "tool",
        "call": {"name": "read", "arguments": {"path": "kit.py"}, "id": "1"},
        "result": {"content": "\n".join(f"line {n}" for n in range(40)), "id": "1"},
        "started_at": "2026-11-23T06:00:02.000+00:00",
        "ended_at": "2026-11-23T06:00:02.500+00:00",
    },
    {
        "type": "tool",
        "call": {"name": f"edit{HOSTILE}", "arguments": {"path": HOSTILE, "times": 2}, "id": "2"},
        "result": {"content": f"no such line {HOSTILE}", "is_error": True, "id": "2"},
        "started_at": "2026-11-23T06:00:03.000+00:00",
        "ended_at": "2026-11-23T06:00:03.250+00:00",
    },
    {
        "type": "subagent",
        "name": "finder",
        "subagent": {
            "steps": [
                {
                    "type": "tool",
                    "call": {"name": "grep", "arguments": {"pattern": "x ="}, "id": "3"},
                    "result": {"content": "kit.py:1: x = 1", "id": "3"},
                    "started_at": "2026-11-23T06:00:05.000+00:00",
                    "ended_at": "2026-11-23T06:00:05.500+00:00",
                }
            ]
        },
        "started_at": "2026-11-23T06:00:04.000+00:00",
        "ended_at": "2026-11-23T06:00:06.000+00:00",
    },
    {
        "type": "agent",
        "content": f"It says 2 now. {HOSTILE}",
        "usage": {"prompt_tokens": 1500, "completion_tokens": 60, "cost_usd": 0.008},
        "started_at": "2026-11-23T06:00:06.000+00:00",
        "ended_at": "2026-11-23T06:00:09.000+00:00",
    },
)
_CASE = """
    id: kit
    task: {prompt: "PROMPT"}
    source: {path: source}
    matrix: {harnesses: [replay], models: [cheat, fix, lazy], trials: 2}
    submission: {on_suspicion: POLICY}
    graders:
      - {type: command, name: solved, gate: true, cmd: "cat kit.py; grep -q 'x = 2' kit.py"}
      - {type: files, name: tidy, patterns: ["x = 2"]}
"""
_JUDGED = """\
      - type: llm_judge
        name: clear
        weight: 2
        model: "MODEL"
        criteria:
          - {name: short, requirement: The answer has '2', weight: 2}
          - {name: polite, requirement: The answer has 'now'}
"""
_LIAR = "class Any:\n    def __eq__(self, other):\n        return True\n"


def write_repair(root: Path, *, policy: str = "flag", model: str = "") -> Path:
    """Write the case; a model judges it, too, if one is named."""
    text = _CASE + (_JUDGED if model else "")
    for word, meant in (("PROMPT", PROMPT), ("POLICY", policy), ("MODEL", model)):
        text = text.replace(word, meant)
    case = write_case(root, text, "kit")
    files = {
        "source/kit.py": "x = 1\n",
        "source/old.py": "y = 1\n",
        "recordings/fix/files/kit.py": f"x = 2  # done {HOSTILE}\n",
        "recordings/fix/files/notes <b>.txt": f"{HOSTILE}\n",
        "recordings/fix/deleted.txt": "old.py\n",
        "recordings/fix/answer.txt": f"It says 2 now. {HOSTILE}",
        "recordings/fix/trace.jsonl": "".join(f"{json.dumps(step)}\n" for step in STEPS),
        "recordings/cheat/files/kit.py": f"{_LIAR}x = 2\n",
        "recordings/cheat/answer.txt": "It says 2 now.",
        "recordings/lazy/answer.txt": f"I could not. {HOSTILE}",
    }
    return write_files(case, files)


def run_repair(root: Path, *, model: str = "") -> Path:
    """Write it and run it in this directory, as the run `kit`: six cells, of which two fail."""
    write_repair(root, model=model)
    done = assay("run", "evals", "--name", "kit", cwd=root)
    assert done.returncode == 1, done.stderr
    return root
