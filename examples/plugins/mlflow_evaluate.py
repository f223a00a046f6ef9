"""An evaluation of MLflow whose scorer is assay's: one right answer, one wrong, one unknown.

    pip install assay mlflow
    python mlflow_evaluate.py

It is kept in a file of SQLite here; ``mlflow ui --backend-store-uri sqlite:///runs.db`` shows it.
"""

import mlflow

from assay import SubScore
from assay.graders import Grader
from assay.plugins.mlflow import scorer


class Never(Grader):
    """Applies to nothing."""

    name = "never"

    @classmethod
    async def compute_score(cls, answer: str) -> SubScore:
        return SubScore.skipped("never", "it does not apply")


def agent(question: str) -> str:
    return "It is Nairobi."


data = [
    {
        "inputs": {"question": "What is the capital of Kenya?"},
        "expectations": {"expected_response": "Nairobi"},
    },
    {
        "inputs": {"question": "What is the capital of Peru?"},
        "expectations": {"expected_response": "Lima"},
    },
    {"inputs": {"question": "What is the best capital?"}},
]

mlflow.set_tracking_uri("sqlite:///runs.db")
mlflow.set_experiment("capitals")
result = mlflow.genai.evaluate(
    data=data,
    predict_fn=agent,
    scorers=[scorer("graders.yaml", name="capital"), scorer(Never)],
)
print(result.metrics)
for trace in mlflow.search_traces(return_type="list"):
    for found in trace.info.assessments:
        if isinstance(found, mlflow.entities.Feedback):
            error = found.error and (found.error.error_code, found.error.error_message)
            print(found.name, found.value, error, (found.metadata or {}).get("assurance"))
            print(found.rationale)
