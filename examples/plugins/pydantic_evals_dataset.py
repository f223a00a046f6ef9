"""A dataset of pydantic-evals whose evaluator is assay's: one right answer, one wrong, one unknown.

    pip install assay pydantic-evals
    python pydantic_evals_dataset.py
"""

from pydantic_evals import Case, Dataset

from assay import SubScore
from assay.graders import Grader
from assay.plugins.pydantic_evals import evaluator


class Never(Grader):
    """Applies to nothing."""

    name = "never"

    @classmethod
    async def compute_score(cls, answer: str) -> SubScore:
        return SubScore.skipped("never", "it does not apply")


dataset = Dataset(
    name="capitals",
    cases=[
        Case(name="kenya", inputs="What is the capital of Kenya?", expected_output="Nairobi"),
        Case(name="peru", inputs="What is the capital of Peru?", expected_output="Lima"),
        Case(name="best", inputs="What is the best capital?"),
    ],
    evaluators=[evaluator("graders.yaml", name="capital"), evaluator(Never)],
)


async def agent(question: str) -> str:
    return "It is Nairobi."


report = dataset.evaluate_sync(agent, progress=False)
report.print(include_reasons=True)
for case in report.cases:
    scores = {name: found.value for name, found in case.scores.items()}
    passed = {name: found.value for name, found in case.assertions.items()}
    failures = [failure.error_message for failure in case.evaluator_failures]
    print(case.name, scores, passed, failures)
average = report.averages()
print("averages", average and (average.scores, average.assertions))
