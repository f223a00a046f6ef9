"""Every comparison against texts made to hang, crash or fool it.

The limit of CPU time is several times what the slowest takes; what these texts aim at (quadratic
and exponential time) would take longer, most of them minutes to ages.
"""

from __future__ import annotations

import itertools
import signal
import time
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.text import (
    choice_match,
    contains_any,
    exact_match,
    extract_answer,
    f1_score,
    json_match,
    json_schema,
    normalize,
    numeric_match,
    regex_match,
    similarity,
)
from assay.text.choice import _patterns
from assay.text.explain import explain
from assay.text.extract import _PART, in_parts
from assay.text.numbers import _NUMBER
from tests.each import each

N = 50_000
CPU_SECONDS = 3.0

TEXTS = {
    "marks": "a" + "\u0301\u0316" * (N // 2),
    "jamo": "\u1161" * N,
    "quotes": "'" * N,
    "emphasis": "*a" * (N // 2),
    "brackets": "(a" * (N // 2),
    "deep list": "[" * N,
    "deep object": '{"a":' * (N // 5),
    "mismatched": "[}" * (N // 2),
    "strings": '["' * (N // 2),
    "fences": "```\n" * (N // 4),
    "backslashes": '"' + "\\" * N,
    "boxes": "\\boxed{" * (N // 7),
    "closings": "}" * N,
    "tags": "<answer>" * (N // 8),
    "exclamations": "!" * N + "x",
    "endings": "!.?" * (N // 3) + "x",
    "digits": "1" * N,
    "ones": "1 " * (N // 2),
    "groups": "1,111" * (N // 5),
    "fractions": "1/" * (N // 2),
    "mixed": "1 1/" * (N // 4),
    "exponents": "1e" * (N // 2),
    "powers": "1 x 10^" * (N // 7),
    "articles": "the " * (N // 4),
    "spaces": " " * N + "x",
    "new lines": "\n" * N,
    "labels": "answer A, " * (N // 10),
    "listed": "A\n" * (N // 2),
    "bold": "*_(" * (N // 3),
    "operators": "- " * (N // 2),
    "surrogates": "\ud800" * N,
    "regex bait": "a" * N + "!",
}

COMPARISONS: dict[str, Callable[[str], object]] = {
    "normalize": normalize,
    "exact_match": lambda text: exact_match(text, "Paris"),
    "exact_match near": lambda text: exact_match(text, text + "."),
    "contains_any": lambda text: contains_any(text, ["b\u0301", "zz"]),
    "f1_score": lambda text: f1_score(text, "a b c"),
    "numeric first": lambda text: numeric_match(text, 5),
    "numeric only": lambda text: numeric_match(text, 5, pick="only"),
    "regex": lambda text: regex_match(text, "^(a+)+$"),
    "regex extract": lambda text: extract_answer(text, "a(?:[^b]*b)?"),
    "boxed": lambda text: extract_answer(text, "boxed"),
    "tag": lambda text: extract_answer(text, "answer_tag"),
    "last line": lambda text: extract_answer(text, "last_line"),
    "json": lambda text: json_match(text, {"a": 1}),
    "json partial": lambda text: json_match(text, {"a": 1}, partial=True),
    "schema": lambda text: json_schema(text, {"pattern": "^(a+)+$"}),
    "choice": lambda text: choice_match(text, "A", choices={"A": "Paris", "B": "Rome"}),
    "similarity": lambda text: similarity(text[:4_000], "Paris " * 300),
    "explained": lambda text: [explain(k, 0.0, {"answer": text, **more}) for k, more in ASKED],
}
ASKED: list[tuple[str, dict[str, object]]] = [
    ("exact_match", {"expected": "Paris"}),
    ("contains_any", {"substrings": ["b\u0301", "zz"]}),
    ("regex_match", {"pattern": "^(a+)+$"}),
    ("f1_score", {"reference": "a b c"}),
    ("numeric_match", {"expected": 5, "pick": "only"}),
    ("choice_match", {"expected": "A", "choices": {"A": "Paris", "B": "Rome"}}),
    ("math_equal", {"expected": "1"}),
    ("json_match", {"expected": {"a": 1}}),
    ("json_schema", {"schema": {"pattern": "^(a+)+$"}}),
]


@pytest.mark.soak
@pytest.mark.parametrize("text", TEXTS)
@each("comparison", COMPARISONS)
def test_no_text_hangs_or_raises(comparison: str, text: str) -> None:
    started = time.process_time()
    COMPARISONS[comparison](TEXTS[text])
    assert time.process_time() - started < CPU_SECONDS


@pytest.mark.slow
@pytest.mark.parametrize("line", ["A\n", "(A) x\n", "B. \n", " "])
def test_attack_a_long_text_holds_up_no_other_thread(line: str) -> None:
    """One search through two megabytes held the interpreter's lock for all of its seconds.

    Where another thread could go on, a signal of this one is handled, too: by its processor time,
    as a busy machine is no wait.
    """
    answer, beats = line * (600_000 // len(line)), list[float]()
    comparisons: list[Callable[[], float]] = [
        lambda: choice_match(answer, "B"),
        lambda: numeric_match(answer, 5),
    ]

    def beat(*_: object) -> None:
        beats.append(time.thread_time())

    before = signal.signal(signal.SIGPROF, beat)
    try:
        for compare in comparisons:
            beats[:] = [time.thread_time()]
            signal.setitimer(signal.ITIMER_PROF, 0.005, 0.005)
            compare()
            signal.setitimer(signal.ITIMER_PROF, 0)
            beats.append(time.thread_time())
            longest = max(after - before for before, after in itertools.pairwise(beats))
            assert longest < max(0.2, (beats[-1] - beats[0]) / 4)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


_SCRAPS = st.sampled_from(
    ["A", "(B)", "\n", " ", "Answer: C", "the answer is a", "12", "1,000", "1 000", "-3/4", "2^",
     ".", "1" * 9_000, " " * 9_000, "because", "not ", "B) x\n", "it's D.", "0x1f", "**A**"]
)  # fmt: skip


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["x ", "é\n", "7 ", "- "]),
            st.integers(-40, 40),
            st.lists(_SCRAPS, max_size=8),
        ),
        min_size=1,
        max_size=3,
    )
)
def test_a_long_text_is_searched_in_parts_as_if_it_were_searched_at_once(
    given_parts: list[tuple[str, int, list[str]]],
) -> None:
    text = ""
    for filler, shift, scraps in given_parts:  # what decides stands about where a part ends
        end = (len(text) // _PART + 1) * _PART + shift
        text += (filler * _PART)[: max(0, end - len(text))] + "".join(scraps)
    text += " end" * 20_000
    patterns = _patterns(tuple("abcd"))
    for pattern in (_NUMBER, patterns.stated, patterns.alone, patterns.listed, patterns.marked):
        found = [match.span() for match in in_parts(pattern, text)]
        assert found == [match.span() for match in pattern.finditer(text)]
