"""Who answers an agent that asks whether it may do something: a case's ``observe.interaction``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, TypeAlias

from assay.frozen import frozen
from assay.tasks.rules import Ruled
from assay.types.codec import Problem
from assay.types.trace import ToolKind

Decision: TypeAlias = Literal["allow", "deny"]


@frozen(kw_only=True)
class Rule(Ruled):
    """What is decided of the requests that it is about; what is left out is about any.

    Attributes:
        tool_kind: What sort of work the tool does.
        name: The tool, or what the agent calls the step.
        input_regex: Is found in the JSON of the tool's arguments.
        prompt_regex: Is found in what the agent asks.
        decision: What is decided; or name an option.
        option: The id of one of the options that the agent gives.
    """

    tool_kind: ToolKind | None = None
    name: str = ""
    input_regex: str = ""
    prompt_regex: str = ""
    decision: Decision | None = None
    option: str = ""

    def _problems(self) -> Iterator[Problem]:
        if (self.decision is None) == (not self.option):
            yield Problem((), "a rule has either a decision or an option")
        for name in ("input_regex", "prompt_regex"):
            try:
                re.compile(getattr(self, name))
            except re.error as error:
                yield Problem((name,), f"not a regular expression: {error}")


@frozen(kw_only=True)
class Interaction(Ruled):
    """A policy for permission requests, and what it takes.

    Attributes:
        policy: ``auto-approve``; ``auto-deny``; ``scripted``: by the first rule that is about a
            request; ``llm-based``: a model decides; ``manual``: whoever sits at the terminal,
            and no where nobody does.
        rules: For ``scripted``.
        default: For ``scripted``: what no rule is about.
        model: For ``llm-based``: a model reference.
        instructions: For ``llm-based``: what the model is to allow.
        fallback: For ``llm-based``: what is decided where the model gives no answer.
    """

    policy: Literal["auto-approve", "auto-deny", "scripted", "llm-based", "manual"]
    rules: tuple[Rule, ...] = ()
    default: Decision = "allow"
    model: str = ""
    instructions: str = ""
    fallback: Decision = "deny"

    def _problems(self) -> Iterator[Problem]:
        if self.rules and self.policy != "scripted":
            yield Problem(("rules",), f"{self.policy} takes no rules", "use scripted")
        if (self.policy == "llm-based") != bool(self.model):
            wanted = "needs a model" if self.policy == "llm-based" else "takes no model"
            yield Problem(("model",), f"{self.policy} {wanted}")
