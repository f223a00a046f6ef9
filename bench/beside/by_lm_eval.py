"""lm-eval: the filters and metrics of its own tasks, read from their files."""

# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lm_eval.tasks
import yaml
from asked import Case, answer, cases, each
from lm_eval.api.metrics import exact_match_fn
from lm_eval.filters import build_filter_ensemble
from lm_eval.tasks.minerva_math.utils import process_results

_TASKS = Path(lm_eval.tasks.__file__).parent
_OF = {
    "number": ("gsm8k/gsm8k.yaml", "flexible-extract"),
    "text": ("triviaqa/default.yaml", "remove_whitespace"),
}
_LETTER = r"(?i)ANSWER *: *\(?([A-D])\b"
"""For a prompt of one's own: its guide advises a filter by a pattern."""


def _by_task(case: Case) -> bool:
    path, wanted = _OF[case["kind"]]
    task: dict[str, Any] = yaml.safe_load((_TASKS / path).read_text("utf-8"))
    steps = next(one["filter"] for one in task["filter_list"] if one["name"] == wanted)
    said = case["answer"]
    if case["kind"] == "text":  # where the task ends what the model writes
        for end in task["generation_kwargs"]["until"]:
            said = said.lstrip().split(end)[0]
    metric = task["metric_list"][0]
    options = {key: value for key, value in metric.items() if key.startswith(("ignore", "regexes"))}
    return _matches(said, str(case["expected"]), steps, options)


def _choice(case: Case) -> bool:
    steps = [{"function": "regex", "regex_pattern": _LETTER, "group_select": -1}]
    steps.append({"function": "take_first"})
    return _matches(case["answer"], case["expected"], steps, {"ignore_case": True})


def _matches(
    said: str, expected: str, steps: list[dict[str, Any]], options: dict[str, Any]
) -> bool:
    named = [(step.pop("function"), step) for step in steps]
    one = SimpleNamespace(resps=[said], doc={}, filtered_resps={})
    build_filter_ensemble("found", named).apply([one])
    found = one.filtered_resps["found"]
    return exact_match_fn(predictions=[found], references=[expected], **options)["exact_match"] == 1


def _math(case: Case) -> bool:
    box = f"\\boxed{{{case['expected']}}}"
    document = {"answer": case["expected"], "solution": box}
    return process_results(document, [case["answer"]])["math_verify"] == 1


told = each(cases(*_OF), _by_task) | each(cases("choice"), _choice)
answer(told | each(cases("math"), _math))
