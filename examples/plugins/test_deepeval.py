"""Tests of DeepEval whose metric is assay's; DeepEval asks no model for it.

    pip install assay deepeval
    deepeval test run test_deepeval.py

The first two pass, the third fails, and the fourth could not be graded. With ``--skip-on-missing-params``
the last is skipped, as no grader applies; without it, that is an error, too.
"""

from deepeval import assert_test
from deepeval.test_case import LLMTestCase, ToolCall

from assay import SubScore
from assay.graders import Grader
from assay.plugins.deepeval import metric


class Never(Grader):
    """Applies to nothing."""

    name = "never"

    @classmethod
    async def compute_score(cls, answer: str) -> SubScore:
        return SubScore.skipped("never", "it does not apply")


def answered(country: str, city: str | None) -> LLMTestCase:
    question = f"What is the capital of {country}?"
    return LLMTestCase(input=question, actual_output="It is Nairobi.", expected_output=city)


def test_right() -> None:
    assert_test(answered("Kenya", "Nairobi"), [metric("graders.yaml")])


def test_tools() -> None:
    case = answered("Kenya", "Nairobi")
    case.tools_called = [ToolCall(name="search", input_parameters={"country": "Kenya"})]
    assert_test(case, [metric("tools.yaml")])


def test_wrong() -> None:
    assert_test(answered("Peru", "Lima"), [metric("graders.yaml")])


def test_nothing_expected() -> None:
    assert_test(answered("Atlantis", None), [metric("graders.yaml")])


def test_does_not_apply() -> None:
    assert_test(answered("Kenya", "Nairobi"), [metric(Never)])
