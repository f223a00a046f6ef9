"""promptfoo's own tests of assertions, by the graders that ``assay import promptfoo`` makes."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from assay.errors import AssayError
from assay.graders.apply import grade_alone
from assay.graders.usage import USAGE
from assay.interop.promptfoo_read import read_config
from assay.interop.promptfoo_suite import cases_of
from assay.types import AgentStep, Submission, Trace
from bench.proof.material import Case, Difference, Source, recorded

ABOUT = "imported assertions pass and fail the outputs that promptfoo's own tests say"
SOURCE = Source("promptfoo/promptfoo", "567988d2f0e0bf8acf38cfa070e4c0411f08422c", "MIT")
_EMPTY = "An empty text is in every answer, so none is looked for, and none compared with."
AGREE, OF = 95, 184
DIFFERENCES = (
    Difference(
        "*",
        "by design",
        "The test says itself what a file, a server or a judge returns, or hands over code.",
        said="* expected, needs *",
    ),
    Difference(
        "*",
        "by design",
        "The import lists it with what to write instead: JavaScript, SQL, XML, embeddings, "
        "perplexity, judges of documents, `transform`.",
        said="* has no counterpart*",
    ),
    Difference(
        "contains:*regex match with *",
        "by design",
        "Quotes in a list of texts are read as later versions of promptfoo read them.",
    ),
    Difference("contains:*empty *", "by design", _EMPTY),
    Difference("contains:*null value after*", "by design", _EMPTY),
    Difference("contains:*only spaces and commas*", "by design", _EMPTY),
    Difference("levenshtein:*should handle empty strings*", "by design", _EMPTY),
    Difference("levenshtein:*not a string*", "by design", "A number is compared as it is written."),
    Difference("*array of references*", "assay", "`similarity` has one reference."),
)
_FILES = ("runAssertion", "contains", "levenshtein", "bleu", "gleu")


def cases(directory: Path) -> Iterator[Case]:
    """Each expectation of five files of tests, in their order."""
    files = [f"test/assertions/{name}.test.ts" for name in _FILES]
    present = [file for file in files if (directory / file).is_file()]
    recorder = Path(__file__).with_suffix(".cjs")
    with tempfile.TemporaryDirectory(prefix="assay-proof-") as home, asyncio.Runner() as runner:
        for test in recorded(recorder, str(directory), *present):
            said = runner.run(_said(test, Path(home, "promptfooconfig.yaml")))
            expected = {True: "passes", False: "fails", None: "refused"}[test["expected"]]
            agrees = said.partition(":")[0] == expected
            told = json.dumps(test["assertion"])[:300]
            yield Case(test["id"], agrees, f"{expected} expected, {said}; {told}")


async def _said(test: Mapping[str, Any], config: Path) -> str:
    """What becomes of an output by what an assertion becomes."""
    if test["needs"]:
        return f"needs {test['needs'][0]}"
    asked = {"vars": test["vars"], "assert": [test["assertion"]]}
    config.write_text(json.dumps({"prompts": ["Some prompt"], "tests": [asked]}), "utf-8")
    try:
        imported = await cases_of(read_config(str(config)))
        if imported.left:
            left = imported.left[0]
            return f"refused: {left.what}" if "no counterpart" not in left.what else left.what
        (grader,) = imported.cases[0].graders
        node = await grade_alone(grader.spec, _submission(test))
    except AssayError as error:
        return f"refused: {error}"
    if node.value is None:
        return f"refused: {node.reason}"
    return "passes" if (node.value == 1.0 if node.passed is None else node.passed) else "fails"


def _submission(test: Mapping[str, Any]) -> Submission:
    output = test["output"]
    trace = Trace(steps=[AgentStep(content=output, done=True)], content=output)
    trace.extra[USAGE] = {"seconds": test["seconds"], "cost_usd": test["cost"]}
    return Submission(
        answer=output, question="Some prompt", metadata=dict(test["vars"]), trace=trace
    )
