"""What an answer says in signs, code and markup is content; what shows nothing is none."""

from __future__ import annotations

from assay.graders.judges.gate import emptiness
from tests.each import each


@each(
    "answer",
    [
        *("Answer: \u221e", "Answer: \u2713", "Final answer: \u2264", "\u7b54\u6848\uff1a\u2713"),
        *("Answer: \u2605\u2605\u2605\u2605\u2606", "Answer: \U0001f44d", "Answer: `{}`"),
        *("Answer: &lt;", r"Answer: \textbf", "Answer: \u2713" + " ." * 200),
    ],
)
def test_wrong_a_sign_behind_an_opener_is_an_announcement(answer: str) -> None:
    assert emptiness(answer) == ""


@each(
    "answer",
    [
        *("`&nbsp;`", "`&lt;`", "`<br>`", "`<p></p>`", "`[]`", "`` ` ``", "`<answer>`"),
        *("```json\n[]\n```", "```json\n{}\n```", "```html\n<br>\n```", "~~~\n{}\n~~~", "```\n{}"),
        *("&lt;", "&gt;", "&amp;", "&copy;", "&mdash;", "&#60;", r"\textbf", r"\quad", r"\boxed"),
    ],
)
def test_wrong_an_answer_in_code_or_markup_is_empty(answer: str) -> None:
    assert emptiness(answer) == ""
    assert emptiness(answer, openers=False) == ""


@each(
    "answer",
    [
        *("&nbsp;", "&ensp;&#8203;", "&colon;", "<p></p>", "<script></script>", "<br>", "` `"),
        *(r"\boxed{}", r"\boxed {}", r"\boxed{\quad}", "```\n \n```", "```python\n", "``````"),
        *("`\u200b`", "`\u3164`", "```\n\u2800\n```", "``", "`", "`<br>"),
    ],
)
def test_attack_code_and_markup_that_show_nothing_are_content(answer: str) -> None:
    assert emptiness(answer, openers=False)


@each(
    "answer",
    [
        *("`Solution:`", "```\nSolution:\n```", "Solution&colon;", "Solution&#58;"),
        *(r"\textbf{Solution:}", r"\quad Solution:", "Solution: ```\n```", "Solution: &nbsp;"),
    ],
)
def test_attack_an_announcement_in_code_or_markup_is_content(answer: str) -> None:
    assert emptiness(answer) == "the answer only announces an answer"


@each(
    "answer",
    [
        *(
            "First.",
            "Output",
            "Certainly.",
            "Response.",
            "Step 1",
            "Of course.",
            "Sure.",
            "Reasoning",
        ),
        *("Solution: First", "Answer: output.", "Solution: " * 500 + "42", "First: Canberra"),
    ],
)
def test_a_word_that_may_be_the_answer_is_no_announcement(answer: str) -> None:
    assert emptiness(answer) == ""


@each(
    "text",
    [
        *("`" * 400_000, "` `` ``` " * 40_000, "~~~ `\n" * 60_000, "``  " * 90_000),
        "".join("`" * length + " " for length in range(1, 900)),
    ],
)
def test_attack_backticks_do_not_take_time_without_end(text: str) -> None:
    assert emptiness(f": {text}") in ("", "the answer has no words")
