"""The table of grader kinds: the names that cases and grader files may use.

A kind is a `Grader` class found by name when first needed, so that naming one costs no import.
``python:module:Class`` and ``python:./file.py:Class`` name a class of one's own.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from assay.errors import InputError, nearest, reason_of
from assay.frozen import frozen
from assay.graders.base import Grader, Parameter

_COMPARISONS = (
    "exact_match",
    "contains",
    "contains_any",
    "contains_all",
    "numeric_match",
    "f1_score",
    "regex_match",
    "json_match",
    "json_schema",
    "choice_match",
    "similarity",
    "math_equal",
)

KINDS: Mapping[str, str] = {
    "command": "assay.graders.command:CommandGrader",
    "files": "assay.graders.files:FilesGrader",
    **{name: f"assay.graders.comparison:{name}" for name in _COMPARISONS},
    "pytest": "assay.graders.tests:PytestGrader",
    "tests": "assay.graders.tests:TestsGrader",
    "c_tests": "assay.graders.c_tests:CTestsGrader",
    "swebench": "assay.graders.swebench:SweBenchGrader",
    "implemented": "assay.graders.implemented:ImplementedGrader",
    "audit": "assay.graders.audit:AuditGrader",
    "llm_judge": "assay.graders.llm_judge:LLMJudgeGrader",
    "binary_judge": "assay.graders.binary_judge:BinaryJudgeGrader",
    "faithfulness": "assay.graders.faithfulness:FaithfulnessGrader",
    "context_relevancy": "assay.graders.relevancy:ContextRelevancyGrader",
    "answer_relevancy": "assay.graders.relevancy:AnswerRelevancyGrader",
    "pairwise": "assay.graders.pairwise:PairwiseGrader",
    "model_judge": "assay.graders.model_judge:ModelJudgeGrader",
    "agent_judge": "assay.agents.agent_judge:AgentJudgeGrader",
    "trace": "assay.graders.trace:TraceGrader",
    "tool_correctness": "assay.graders.tool_correctness:ToolCorrectnessGrader",
    "efficiency": "assay.graders.trace:EfficiencyGrader",
    "function": "assay.graders.function:FunctionGrader",
    "external_endpoint": "assay.graders.endpoint:EndpointGrader",
    "string_check": "assay.graders.openai.comparisons:StringCheckGrader",
    "text_similarity": "assay.graders.openai.comparisons:TextSimilarityGrader",
    "score_model": "assay.graders.openai.judges:ScoreModelGrader",
    "label_model": "assay.graders.openai.judges:LabelModelGrader",
    "openai_python": "assay.graders.openai.python:OpenAIPythonGrader",
    "multi": "assay.graders.openai.definitions:MultiGrader",
}
"""Every declared kind and where it lives."""

COMMANDS = ("command", "pytest", "tests", "c_tests", "swebench", "agent_judge")
"""Kinds that run commands in the sandbox."""
FUNCTIONS = ("function", "openai_python")
"""Kinds that run functions in workers of their own, which have one tier more."""


@frozen
class Kind:
    """One kind of grader."""

    name: str
    parameters: Mapping[str, Parameter]
    takes_any: bool
    filled_from: Mapping[str, str]
    grader: type[Grader]
    description: str


@lru_cache(maxsize=256)
def kind_of(name: str) -> Kind:
    """Find a kind by name."""
    if name.startswith("python:"):
        return own_kind(name, _own_class(name))
    target = KINDS.get(name)
    if target is None:
        valid = [*KINDS, "python:module:Class"]
        raise InputError(f"unknown grader type {name!r}", hint=nearest(name, valid))
    module, _, attribute = target.partition(":")
    found: type[Grader] = getattr(importlib.import_module(module), attribute)
    return own_kind(name, found)


@lru_cache(maxsize=256)
def own_kind(name: str, found: type[Grader]) -> Kind:
    """The kind that a class is, by what it is called."""
    description = (found.__doc__ or "").strip().partition("\n")[0]
    parameters, takes_any = found.parameters()
    return Kind(name, parameters, takes_any, found.filled_from, found, description)


def _own_class(name: str) -> type[Grader]:
    """Import the class that a ``python:`` type names. It is the author's code and is trusted."""
    _, _, target = name.partition(":")
    place, _, attribute = target.rpartition(":")
    if not place or not attribute.isidentifier():
        raise InputError(f"{name!r} must be python:module:Class or python:./file.py:Class")
    try:
        module = load_file(place) if place.endswith(".py") else importlib.import_module(place)
    except Exception as error:
        raise InputError(f"{name!r} cannot be imported: {reason_of(error)}") from error
    found = getattr(module, attribute, None)
    if not (isinstance(found, type) and issubclass(found, Grader)):
        names = [
            n for n, v in vars(module).items() if isinstance(v, type) and issubclass(v, Grader)
        ]
        raise InputError(f"{place} has no Grader {attribute!r}", hint=nearest(attribute, names))
    return found


def load_file(file: str) -> object:
    """Import a Python file by path, once per process; its code is the author's own."""
    import hashlib
    import importlib.util
    import sys
    from importlib.machinery import SourceFileLoader

    path = Path(file).resolve()
    name = f"assay_own_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or not isinstance(spec.loader, SourceFileLoader):
        raise ImportError(f"{file} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        # Never from a cache: it goes by size and second, within which a file may have changed.
        code = spec.loader.source_to_code(spec.loader.get_data(str(path)), str(path))
        exec(code, vars(module))  # noqa: S102 - as an import does
    except BaseException:
        del sys.modules[name]
        raise
    return module
