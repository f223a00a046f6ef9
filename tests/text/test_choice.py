"""Multiple choice: what is a choice, and what only looks like one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import InputError
from assay.text import choice_match
from tests.each import each

TEXTS = {"A": "Paris", "B": "London", "C": "Rome", "D": "A dog"}


_SAYS_B = [
    *["B is correct.", "Option B is the right answer", "It's B.", "It must be B", "I think B."],
    *("Therefore, B.", "So (B)", "Hence B", "I go with B", "Correct: B", "B!"),
    "(B) is the answer",
    *["<answer>B</answer>", r"\boxed{\mathrm{B}}", r"\boxed{\mathbf{(B)}}", r"\fbox{B}"],
    *["\uff22", "Answer\uff1a B", "The answer is not A but B", "The answer isn't A, but B."],
    *["The correct answer isn't A; it's B.", "Answer: A. Wait, that is wrong. It is B."],
    *("La respuesta correcta es B", "Die Antwort ist B.", "\u7b54\u6848\u662fB\u3002"),
    "\u041e\u0442\u0432\u0435\u0442: B",
    *("Answer: (B) 12, since (A) is too small", "Answer: B (Rome), not A"),
    "Answer: B) Vitamin C",
    *["Answer: B. A is correct for cats only.", "ANSWERS: B"],
    "I am not sure, but the answer is B",
    *(
        "B - Rome",
        "B (Rome)",
        "B, Rome",
        "#### B",
        "- B",
        "B;",
        "B\r\n",
        "<b>B</b>",
        "B \u2705",
    ),
    *("The answer is clearly B.", "The answer to this question is B", "Definitely B"),
    *("B is indeed correct", "B must be the answer", "B seems most plausible.", "B it is."),
    *("ans: B", "Final: B", "By elimination: B", "That leaves B.", "Answer \u2192 B"),
    *(r"The answer is \(B\).", "{'answer': 'B'}", "<final_answer>B</final_answer>"),
    *(
        "\u6545\u9009B\u3002",
        "\u7b54\u3048\u306fB\u3067\u3059",
        "\u3010\u7b54\u6848\u3011B",
        "\uc815\ub2f5\uc740 B\uc785\ub2c8\ub2e4.",
    ),
    *("Die Antwort lautet B", "La respuesta correcta es la B.", "Antwoord: B"),
    *("Answer: B. Wait, no. Actually, B", "Answer: A. Hmm, actually B.", "Answer: A... no, B"),
    *("Answer: B; C is wrong", "My answer is (B), though (C) was tempting."),
    "Answer: B\n\nReasoning: Option A fails. Option C fails since x.",
    "<think>The answer is C.</think>\n\nB",
    *("Answer: C. On second thought, B.", "Answer: C. No wait: B", "Answer: C... hmm, B."),
    *(
        "B\n\nA would be correct if x.",
        "B since 7*2 = 14",
        "7*2 = 14 \u2192 B",
        "Only B holds.",
    ),
    *("The incorrect statement is B.", "The exception is B.", "In conclusion, B."),
    *(
        "The answer is... B.",
        "The answer is <strong>B</strong>.",
        "Response: B",
        r"\boxed{\bf B}",
    ),
    "Answer: ~~C~~ B",
    *("Answer: C. Wait, B.", "option b", "Choice (B)", "I'd go for B.", "Selected: B", "B\u200b"),
    *(r"Answer: \text{B}", r"The answer is $\textbf{(B)}$", r"\(\mathrm{B}\)", r"\textbf{(B)} 5"),
    *("\u201cB\u201d", "\u00abB\u00bb", "\u56de\u7b54\uff1aB", "\ub2f5: B", "L\u00f6sung: B"),
    *("Soluci\u00f3n: B", "La opci\u00f3n correcta es B", "La r\u00e9ponse correcte est B."),
    *("Vastaus: B", "Odpov\u011b\u010f: B", "R\u0103spuns: B", "Jawabannya adalah B"),
    *(
        "C\u00e2u tr\u1ea3 l\u1eddi l\u00e0 B",
        "\u0391\u03c0\u03ac\u03bd\u03c4\u03b7\u03c3\u03b7: B",
        "\u0412\u0456\u0434\u043f\u043e\u0432\u0456\u0434\u044c: B",
        "\u05ea\u05e9\u05d5\u05d1\u05d4: B",
        "\u0627\u0644\u0625\u062c\u0627\u0628\u0629 \u0647\u064a B",
        "\u0e04\u0e33\u0e15\u0e2d\u0e1a: B",
    ),
]


@each(
    ("answer", "label"),
    [
        *[(said, "B") for said in ("B", "b", "(B)", "B.", "**B**", '"B"', "B) London", "B. x\ny")],
        *[(said, "B") for said in ("Answer: B", "**Answer:** B", "**Answer: B**", "Answer:\nB")],
        *[(said, "B") for said in ("the answer is (b)", "The answer is **B**.", "answer is: B")],
        *[
            (said, "B")
            for said in ("I choose B", "The correct option is B", "So B wins? Choice: B")
        ],
        *[(said, "B") for said in (r"\boxed{B}", r"$\boxed{\text{(B)}}$", "Reasons.\n\nB")],
        *[(said, "A") for said in ("A", "a", "The answer is A", "The correct answer is A.")],
        *[(said, "B") for said in _SAYS_B],
        ("The answer is A because it is", "A"),
        ("The answer is A: Paris", "A"),
        ("The answer is B, London", "B"),
        ("(A) is wrong because of that, so (B)", "B"),
        ("Answer: A\nNo, wait.\nAnswer: C", "C"),
        ("(A) at first, but\nAnswer: B, not (C)", "B"),
    ],
)
def test_what_is_a_choice(answer: str, label: str) -> None:
    assert choice_match(answer, label) == 1.0
    assert sum(choice_match(answer, other) for other in "ABCD") == 1.0


@each(
    "answer",
    [
        "",
        "A dog is a friend",
        "The answer is a dog",
        "The answer is A dog",
        "I am sure of B12",
        "The answer is not B",
        "Not (B)",
        "It isn't **B**",
        "Answer: not A",
        "Answer: ABCD",
        "The options are A and B.",
        None,
        # The options are listed.
        "A, B, C, D",
        "A B C D",
        "A\nB\nC\nD",
        "A) x\nB) y\nC) z\nD) w",
        "(A) (B) (C) (D)",
        "**A** **B** **C** **D**",
        "Answer: A, B, C or D",
        "Answer: A B C D",
        "Answer: B C D A",
        "Answer: (A) (B) (C) (D)",
        "Answer: A; B; C; D",
        "Answer: A/B/C/D",
        "Answer: A or B",
        "Answer: A and B",
        # The same sentence takes it back.
        *("Answer: B maybe C", "answer: B, alternatively C", "Answer: B -- or perhaps D"),
        "Answer: B = C",
        *("Answer: B (or C)", "Answer: B? Could be D too", "Answer: B, but C is also right"),
        "It's B or C.",
        *("B and C are correct", "I don't think it's B.", "Neither B is correct", "It is a dog"),
        "So a dog.",
        *["Wrong answer: B", "The incorrect answer is B", "I would not choose B"],
        *(
            "Answer: B. Or maybe C.",
            "Answer: B. Alternatively, C.",
            "Answer: B. C is also correct.",
        ),
        *("B is true only if A is.", "The expected one is B if x > 0."),
        *("Answer: B as well as C", "Answer: B plus C", "Answer: B - C", "Answer: B, then C"),
        *("The answer is B if x > 0, otherwise C", r"\boxed{B \text{ or } C}", "(A) and (B)"),
        *("Option B is wrong", "B is the wrong answer", "The least likely answer is B"),
        *("The answer is B? I don't think so.", "Answer: not(B)", "~~B~~", "<!-- Answer: B -->"),
        "Answer: B\u0336",
        # Two that stand beside each other.
        *("(A) (B)", "**A** (B)", "A\nB", "1. A\n2. B", r"\text{A} \text{B}"),
        "The answer is B-complex.",
        *["I did not pick option B", "I didn't choose B", "That is not the correct answer: B"],
    ],
)
def test_attack_what_chooses_no_single_option_is_none(answer: str | None) -> None:
    assert [choice_match(answer, label) for label in "ABCD"] == [0.0] * 4


@each(
    ("answer", "expected", "score"),
    [
        ("Paris", "A", 1.0),
        ("paris.", "Paris", 1.0),
        ("I think so. The answer is Paris.", "A", 1.0),
        ("London", "A", 0.0),
        ("a dog", "D", 1.0),
        ("The answer is a dog", "D", 1.0),
        ("B) London", "London", 1.0),
        ("Paris or London", "A", 0.0),
        ("**Answer:** *Paris*", "A", 1.0),
        (r"\boxed{\text{Paris}}", "A", 1.0),
        ("<answer>Paris</answer>", "A", 1.0),
        ("I think it's Paris.", "A", 1.0),
        ("Is it London, or C? Answer: B", "B", 1.0),  # named before
    ],
)
def test_options_with_texts(answer: str, expected: str, score: float) -> None:
    assert choice_match(answer, expected, choices=TEXTS) == score


def test_what_an_option_says_names_no_other_one() -> None:
    choices = {"A": "", "B": "both or C", "C": "neither"}
    assert choice_match("The answer is B: both or C.", "B", choices=choices) == 1.0


def test_what_is_said_after_a_loose_statement_takes_nothing_back_before_it() -> None:
    assert choice_match("Answer: A. It must be B. Wait, no.", "A", choices="AB") == 1.0
    assert choice_match("Answer: A. Wait, no. It must be B.", "B", choices="AB") == 1.0


def test_labels_of_other_kinds() -> None:
    assert choice_match("Answer: 2", 2, choices="1234") == 1.0
    assert choice_match("The answer is yes.", "yes", choices=["yes", "no"]) == 1.0
    assert choice_match("(A) is wrong, so (B)", "B", choices="AB") == 1.0
    assert choice_match("Yes, it is", "yes", choices=["yes", "no"]) == 1.0
    for answer in ("2.5", "Answer: 2.5", "Answer: 2-3", "-2"):
        assert choice_match(answer, "2", choices="1234") == 0.0, answer


def test_which_of_several_choices_is_picked_and_where_it_is_extracted() -> None:
    both = "Answer: A\nAnswer: B"
    assert choice_match(both, "A", pick="first") == 1.0
    assert choice_match(both, "B", pick="only") == 0.0
    assert choice_match("B <answer>A</answer>", "A", extract="answer_tag") == 1.0
    assert choice_match("B", "B", extract="answer_tag") == 0.0
    tags = "<answer>A</answer> <answer>B</answer>"
    assert choice_match(tags, "A", extract="answer_tag", pick="first") == 1.0


@each(
    ("expected", "options", "said"),
    [
        ("E", {"choices": "AB"}, "expected 'E' is not one of the choices (labels: a, b)"),
        (None, {}, "expected None is not one of the choices (labels: a, b, c, d)"),
        ("A", {"choices": "A"}, "choices must be 2 to 100 labels, not 1"),
        (
            "A",
            {"choices": ["A", "a"]},
            "choices ['A', 'a'] hold a label twice (case does not tell labels apart)",
        ),
        ("A", {"choices": ["A", "B C"]}, "a label is 1 to 20 letters or digits, not 'b c'"),
        ("A", {"choices": ["A", ""]}, "a label is 1 to 20 letters or digits, not ''"),
        ("A", {"pick": "all"}, "unknown pick 'all' (valid: first, last, only)"),
        (
            "x",
            {"choices": {"A": "x", "B": "X"}},
            "expected 'x' is not one of the choices (labels: a, b)",
        ),
    ],
)
def test_a_bad_question_is_refused(expected: object, options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as refused:
        choice_match("A", expected, **options)
    assert str(refused.value) == said


@given(st.text(alphabet="ABCD ()*.,:\n answer is or"))
def test_no_answer_chooses_two(text: str) -> None:
    assert sum(choice_match(text, label) for label in "ABCD") <= 1.0


@given(
    st.lists(st.sampled_from("ABCD"), min_size=2, max_size=2, unique=True),
    st.sampled_from([" or ", ", or ", " maybe ", "/", " = ", " (or ", ", possibly ", " and "]),
    st.sampled_from(["Answer: ", "The answer is ", "I choose ", "It's "]),
)
def test_a_second_option_makes_it_none(labels: list[str], joint: str, stated: str) -> None:
    one, other = labels
    assert [choice_match(f"{stated}{one}{joint}{other}", label) for label in "ABCD"] == [0.0] * 4
    assert choice_match(f"{stated}{one}, not {other}", one) == 1.0
