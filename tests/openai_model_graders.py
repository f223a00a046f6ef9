"""OpenAI's graders that ask a model: how they are declared, and what is graded by one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from assay.graders.apply import grade_submission
from assay.scoring.json_safe import Json
from assay.scoring.results import EvaluationResult, SubScore
from assay.tasks.grader_files import load_graders
from assay.types.submission import Submission

__all__ = ["OUTPUT", "gives", "graded", "label_model", "only", "score_model"]

OUTPUT = "{{ sample.output_text }}"


def score_model(judge: str = "m", **more: Json) -> dict[str, Json]:
    asked: Json = [
        {"role": "developer", "content": "Grade from 1 to 7."},
        {"role": "user", "content": f"Right: {{{{ item.answer }}}}. Said: {OUTPUT} End."},
    ]
    return {"type": "score_model", "model": judge, "input": asked, **more}


def label_model(judge: str = "m", **more: Json) -> dict[str, Json]:
    asked: Json = [{"role": "user", "content": {"type": "input_text", "text": OUTPUT}}]
    labels: dict[str, Json] = {"labels": ["polite", "rude"], "passing_labels": ["polite"]}
    return {"type": "label_model", "model": judge, "input": asked, **labels, **more}


def gives(result: Json) -> dict[str, Json]:
    return {"steps": [{"description": "d", "conclusion": "c"}], "result": result}


async def graded(declared: Mapping[str, Json], answer: str = "Paris") -> EvaluationResult:
    specs = load_graders(json.dumps([dict(declared)]))
    about: dict[str, Json] = {"item": {"answer": "Paris"}}
    return await grade_submission(specs, Submission(answer=answer, metadata=about))


def only(found: EvaluationResult) -> SubScore:
    nodes: Sequence[SubScore] = found.subscores or ()
    assert len(nodes) == 1
    return nodes[0]
