"""A task of Inspect whose scorer is assay's: one right answer, one wrong one, one without a target.

    pip install assay inspect-ai
    inspect eval inspect_task.py --model openai/gpt-5-mini
    inspect score LOG.eval --scorer assay/assay -S grader=graders.yaml
    assay grade LOG.eval graders.yaml

``python inspect_task.py`` asks Inspect's own mock of a model, which says what a script says.
"""

from inspect_ai import Task, eval, task
from inspect_ai.agent import react
from inspect_ai.dataset import Sample
from inspect_ai.model import Model, ModelOutput, ModelUsage, get_model

from assay.plugins.inspect import scorer


@task
def capitals() -> Task:
    samples = [
        Sample(input="What is the capital of Kenya?", target="Nairobi"),
        Sample(input="What is the capital of Peru?", target="Lima"),
        Sample(input="What is the best capital?"),
    ]
    return Task(dataset=samples, solver=react(), scorer=scorer("graders.yaml"))


def mock() -> Model:
    """Submits an answer each time."""
    call = [ModelOutput.for_tool_call("mock", "submit", {"answer": "Nairobi"}) for _ in range(3)]
    for output in call:
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    return get_model("mockllm/model", custom_outputs=call)


if __name__ == "__main__":
    (log,) = eval(capitals(), model=mock(), display="none")
    assert log.results is not None and log.samples is not None
    for score in log.results.scores:
        mean = score.metrics["mean"].value
        print(f"mean {mean}: {score.scored_samples} scored, {score.unscored_samples} unscored")
    for sample in log.samples:
        found = (sample.scores or {})["assay"]
        print(found.value, found.reason, (found.metadata or {})["assurance"])
        print(found.explanation)
