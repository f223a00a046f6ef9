"""A grader as NeMo Gym's resources server, asked as Gym 0.7 asks it.

    pip install "assay[server]"
    python nemo_gym_verify.py

NeMo Gym wants Python 3.13.14: what it sends to `/verify` is made here as Gym 0.7 makes it.
"""

import json
from urllib.request import Request, urlopen

from served import GRADERS, served


def rollout(said: str, truth: str | None) -> dict[str, object]:
    """A row of the dataset, what the model was asked, and its response as OpenAI's API gives it."""
    content: list[object] = [{"type": "output_text", "text": said, "annotations": []}]
    message = {"id": "m", "type": "message", "role": "assistant", "status": "completed"}
    return {
        "responses_create_params": {"input": [{"role": "user", "content": "2+2?"}]},
        "response": {
            "id": "r",
            "object": "response",
            "created_at": 0,
            "model": "policy",
            "output": [{**message, "content": content}],
            "parallel_tool_calls": False,
            "tool_choice": "auto",
            "tools": [],
        },
        "expected_answer": truth,
    }


with served(GRADERS) as url:
    for said, truth in (("4", "4"), ("5", "4"), ("4", None)):  # the last: no truth
        body = json.dumps(rollout(said, truth)).encode()
        asked = Request(f"{url}/verify", body, {"Content-Type": "application/json"})
        with urlopen(asked) as reply:
            found = json.load(reply)
        kept = ("reward", "mask_sample", "_ng_failure_class", "instance_config")
        print({name: found[name] for name in kept if name in found})
