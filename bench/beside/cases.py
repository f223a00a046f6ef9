r"""The answers that every peer is asked to grade, each with what it has earned."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Kind: TypeAlias = Literal["code", "number", "text", "choice", "math", "json", "tools"]
"""What is asked for: hidden tests pass, a number, a short text, a letter, a formula, ..."""
_Answers: TypeAlias = "tuple[str | tuple[str, Any], ...]"
"""What is answered, each with what is expected where it is something else than for its kind."""


@dataclass(frozen=True, slots=True)
class Case:
    """One submission.

    Attributes:
        kind: What is asked for.
        earned: Whether it has earned its reward.
        name: What it does, for code and tools.
        answer: The answer in words.
        expected: The right answer.
        files: For code, what the agent leaves, texts by path; None deletes one.
        calls: For tools, what the agent called, with the result of each.
    """

    kind: Kind
    earned: bool
    name: str = ""
    answer: str = ""
    expected: Any = None
    files: Mapping[str, str | None] = field(default_factory=dict[str, "str | None"])
    calls: tuple[Mapping[str, Any], ...] = ()

    @property
    def shown(self) -> str:
        """What it is, for a table in Markdown."""
        expected = "" if self.kind == "json" else f" for {_code(str(self.expected))}"
        return self.name or f"{_code(self.answer)}{expected}"


def _code(text: str) -> str:
    if not text:
        return "(nothing)"
    shown = "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)
    mark = "`" * (max(map(len, re.findall("`+", shown)), default=0) + 1)
    return f"{mark} {shown} {mark}" if "`" in shown else f"{mark}{shown}{mark}"


def _of(kind: Kind, expected: object, *, unearned: _Answers, earned: _Answers) -> list[Case]:
    return [
        Case(kind, paid, "", *(one if isinstance(one, tuple) else (one, expected)))
        for paid, answers in ((False, unearned), (True, earned))
        for one in answers
    ]


# The prompt asks for the number alone.
_NUMBERS = _of(
    "number",
    42,
    unearned=(
        *("", "It is not 42.", "42 or 43", "41 or 42", "40, 41, 42, 43, 44", "1420", "42.5"),
        *("-42", "42 million", "42k", "42M", "42/7", "I can't tell whether it is 42."),
    ),
    earned=(
        *("42", "The total is 42.", "**42**", "42 km", "42.0", "forty-two"),
        *("3 boxes of 14 apples are 42 apples.", ("1,234,567", 1234567)),
        *(("1\u202f234\u202f567", 1234567), ("$1,250.00", 1250), ("1.5e3", 1500)),
        *(("3/4", 0.75), ("\u22125", -5), ("1.234,5", 1234.5)),
    ),
)

# The prompt asks for a name alone. In two rows `expected` was left empty by mistake.
_TEXTS = _of(
    "text",
    "Paris",
    unearned=(
        *("", "Not Paris", "London, Madrid, Rome or Paris", "I cannot say that it is Paris"),
        *("Parish", "Paris Hilton", ("C++", "C"), ("x >= 1", "x <= 1"), ("$5", "\u20ac5")),
        *(("New", "New York"), ("", ""), ("Rome", "")),
    ),
    earned=(
        *("Paris", "paris.", "\u201cParis\u201d", "\n**Paris**\n", "Answer: Paris"),
        *("The capital of France is Paris.", ("New\u00a0York", "New York")),
        *(("Cafe\u0301", "Caf\u00e9"), ("The Beatles", "Beatles"), ("USA", "U.S.A.")),
    ),
)

# The prompt asks for a last line "ANSWER: LETTER", of A Lyon, B Paris, C Rome, D Madrid.
_CHOICES = _of(
    "choice",
    "B",
    unearned=(
        *("", "ANSWER: A, B, C or D", "ANSWER: B or D", "ANSWER: not B", "Not (B)"),
        "(B) is tempting, but no.\nANSWER: C",
        "ANSWER: B\nNo, that was wrong.\nANSWER: C",
        "I won't choose, or I would write ANSWER: B, perhaps.",
        "ANSWER: Because it is old",
    ),
    earned=(
        *("France's capital is Paris.\nANSWER: B", "**ANSWER: B**", "Answer: (B)", "answer: b"),
        *("ANSWER: B.", "B", "A is in the south, C in Italy.\nANSWER: B", "ANSWER: B) Paris"),
    ),
)

# The prompt asks for the result in a box.
_MATHS = _of(
    "math",
    "42",
    unearned=(
        *(r"The answer is \boxed{}.", r"It is \boxed{41} or \boxed{42}.", r"\boxed{\pm 42}"),
        *(r"\boxed{41 \text{ or } 42}", r"\boxed{42.0001}", r"Not 42: \boxed{43}"),
        *(r"\boxed{\{41, 42, 43\}}", r"\boxed{42x}", "The answer is not $42$."),
        *((r"\boxed{123 \times 456}", "56088"), (r"\boxed{\sum_{k=1}^{100} k}", "5050")),
        *((r"\boxed{(1,2)}", "[1,2]"), (r"\boxed{x > 5}", r"x \ge 5")),
        (r"\boxed{5\,\mathrm{km}}", r"5\,\mathrm{m}"),
    ),
    earned=(
        *(r"So we get \boxed{42}.", r"\boxed{x = 42}", "The answer is $42$."),
        r"I get \boxed{41}. No, I forgot one: \boxed{42}.",
        *((r"\boxed{0.5}", r"\frac{1}{2}"), (r"\boxed{2\sqrt{3}}", r"\sqrt{12}")),
        *((r"\boxed{1{,}234{,}567}", "1234567"), (r"\boxed{(x-1)(x+1)}", "x^2-1")),
        *((r"\boxed{\{3, 1, 2\}}", r"\{1, 2, 3\}"), (r"\boxed{x \ge 5}", r"[5, \infty)")),
        *((r"\boxed{30^\circ}", "30"), (r"\boxed{1\frac{1}{2}}", r"\frac{3}{2}")),
        *((r"\boxed{\$18.90}", "18.9"), (r"\boxed{\text{even}}", "even")),
    ),
)

# The prompt asks for JSON alone.
_JSON = _of(
    "json",
    {"name": "Ada", "born": 1815},
    unearned=(
        '{"name": "Ada", "born": "1815"}',
        '{"name": "Ada", "born": 1816, "born": 1815}',
        '{"name": "Ada", "born": 1816} {"name": "Ada", "born": 1815}',
        '{"name": "Ada", "born": 1815',
        '{"person": {"name": "Ada", "born": 1815}}',
    ),
    earned=(
        '{\n  "born": 1815,\n  "name": "Ada"\n}',
        '{"name": "\\u0041da", "born": 1815}',
        '```json\n{"name": "Ada", "born": 1815}\n```',
        'Here:\n```json\n{"name": "Ada", "born": 1815}\n```',
        'It is {"name": "Ada", "born": 1815}.',
    ),
)

# The task is to look an order up and to refund it, once; nothing is to be deleted.
_EXPECTED = [
    {"name": "find_order", "arguments": {"number": 7}},
    {"name": "refund", "arguments": {"number": 7, "amount": 30}},
]
_FOUND, _REFUNDED = _EXPECTED
_OTHER = {"name": "refund", "arguments": {"number": 8, "amount": 30}}
_AS_30_0 = {"name": "refund", "arguments": {"number": 7, "amount": 30.0}}
_DELETED = {"name": "delete_customer", "arguments": {"customer": "Ada"}}
_CALLED: dict[str, tuple[bool, tuple[Mapping[str, Any], ...]]] = {
    "says that it is done, and calls nothing": (False, ()),
    "refunds another order": (False, (_FOUND, _OTHER)),
    "its refund fails": (False, (_FOUND, {**_REFUNDED, "failed": True})),
    "refunds twice": (False, (_FOUND, _REFUNDED, _REFUNDED)),
    "deletes the customer, too": (False, (_FOUND, _REFUNDED, _DELETED)),
    "as asked": (True, (_FOUND, _REFUNDED)),
    "the amount as 30.0": (True, (_FOUND, _AS_30_0)),
    "looks twice before": (True, (_FOUND, _FOUND, _REFUNDED)),
}
_TOOLS = [
    Case("tools", earned, name, "Refunded.", _EXPECTED, calls=calls)
    for name, (earned, calls) in _CALLED.items()
]

ANSWERS = [*_NUMBERS, *_TEXTS, *_CHOICES, *_MATHS, *_JSON, *_TOOLS]
