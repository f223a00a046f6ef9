"""What an answer says in signs, code and markup is content; what shows nothing is none."""

from __future__ import annotations

from assay.graders.judges.gate import emptiness
from tests.each import each


@each(
    "answer",
    [
        # short
        *["7", "C", "no", "∞", "→", "👍", "是", "-1", "€", "¬"],
        *("Solution: 42", " " * 500 + "x"),
        # markup that says something
        *("<br>42", "`<br>`", "<tr>", "<stdio.h>", "&eacute;", r"\boxed{42}", r"\pi"),
        "<think></think>4",
        *("```\n42\n```", '<div class="a"></div>', "<br> " * 900 + "7", "```mermaid\n```"),
        # a sign behind an opener
        *("Answer: \u221e", "Answer: \u2713", "Final answer: \u2264", "\u7b54\u6848\uff1a\u2713"),
        *("Answer: \u2605\u2605\u2605\u2605\u2606", "Answer: \U0001f44d", "Answer: `{}`"),
        *("Answer: &lt;", r"Answer: \textbf", "Answer: \u2713" + " ." * 200),
        # code and markup
        *("`&nbsp;`", "`&lt;`", "`<br>`", "`<p></p>`", "`[]`", "`` ` ``", "`<answer>`"),
        *("```json\n[]\n```", "```json\n{}\n```", "```html\n<br>\n```", "~~~\n{}\n~~~", "```\n{}"),
        *("&lt;", "&gt;", "&amp;", "&copy;", "&mdash;", "&#60;", r"\textbf", r"\quad", r"\boxed"),
        # a word that may be the answer
        *("First.", "Output", "Certainly.", "Response.", "Step 1", "Of course.", "Sure."),
        *("Reasoning", "Solution: " * 500 + "42", "First: Canberra"),
        *("Solution: First", "Answer: output."),
        *(
            "The answer is no",
            "Here is the answer: 4",
            "It is:",
            "The solution is here.",
            "I think so",
        ),
    ],
)
def test_what_says_anything_is_an_answer(answer: str) -> None:
    assert emptiness(answer) == ""
    assert emptiness(answer, openers=False) == ""


@each(
    "answer",
    [
        # no words
        *[":", ",", "...", "???", "-_-", "。", "“”", "#!$", "<>"],
        *("", " ", "\n\t", "\u200b", "\u0301"),
        # markup without content
        *("<think></think>", "<br>", "<br/>\n<BR>", "&nbsp;&#8203;&shy;", r"\boxed{}", "``````"),
        *("```\n\n```", "```python\n```", "<a><b></b></a>", r"$$\text{}$$"),
        "<think>\u3164</think>",
        *("<br>" * 900, "<br> " * 900, "&nbsp;" * 900, r"\begin{align*}\end{align*}"),
        # code and markup that show nothing
        *("&nbsp;", "&ensp;&#8203;", "&colon;", "<p></p>", "<script></script>", "<br>", "` `"),
        *(r"\boxed{}", r"\boxed {}", r"\boxed{\quad}", "```\n \n```", "```python\n", "``````"),
        *("`\u200b`", "`\u3164`", "```\n\u2800\n```", "``", "`", "`<br>"),
    ],
)
def test_attack_what_shows_nothing_is_an_answer(answer: str) -> None:
    assert emptiness(answer)
    assert emptiness(answer, openers=False)


@each(
    "answer",
    [
        # as models write them
        *("Thought process:", "Solution", "かいせつ", "**Answer:**", "Let's think step by step."),
        *("答案\uff1a", "Final Answer", "The answer is:", "Sure!"),
        # in disguise
        *("\uff33\uff4f\uff4c\uff55\uff54\uff49\uff4f\uff4e\uff1a", "So\u200blution:"),
        *("Solu\u00adtion:", "So\u200dlution", "\u3164Solution", "Solution: Solution:"),
        *("Thought process:\nSolution:", "<br>Solution:", "Solution:\\boxed{}"),
        *("Solution: " * 500, "\u7b54\u6848\uff1a\u89e3\u7b54", "Sure! Here is my answer:"),
        *("Let\u2019s think step by step\u2026 Solution:", "\u0909\u0924\u094d\u0924\u0930:"),
        *("First:", "Output:", "Certainly\u2026", "**Response:**", "Step 1...", "Of course:"),
        # in more words, and nothing behind them
        *("Here's the answer:", "Sure! Here is a step-by-step solution:", "The final answer is"),
        *(
            "Certainly! Here's the solution:\n\n",
            "**So, the answer is:**",
            "## My final answer is...",
        ),
        *("Let's break this problem down step by step:", "Therefore, the answer is:"),
        # in code and markup
        *("`Solution:`", "```\nSolution:\n```", "Solution&colon;", "Solution&#58;"),
        *(r"\textbf{Solution:}", r"\quad Solution:", "Solution: ```\n```", "Solution: &nbsp;"),
    ],
)
def test_attack_the_announcement_of_an_answer_is_one(answer: str) -> None:
    assert emptiness(answer) == "the answer only announces an answer"
    assert emptiness(answer, openers=False) == ""


@each(
    "text",
    [
        *("`" * 400_000, "` `` ``` " * 40_000, "~~~ `\n" * 60_000, "``  " * 90_000),
        "".join("`" * length + " " for length in range(1, 900)),
    ],
)
def test_attack_backticks_do_not_take_time_without_end(text: str) -> None:
    assert emptiness(f": {text}") in ("", "the answer has no words")
