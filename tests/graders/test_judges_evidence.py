"""A verdict must be backed by words that are there; an answer without words gets nothing."""

# ruff: noqa: RUF001 - letters of other scripts

from __future__ import annotations

import re
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from assay.graders.judges.evidence import Sought
from assay.graders.judges.fence import composed, visible
from assay.graders.judges.gate import emptiness, uncommented
from tests.each import each

_ANSWER = "The capital of Australia is “Canberra”,\n  chosen in 1908… as a compromise."


@each(
    ("quote", "stands"),
    [
        ("The capital of Australia is", True),
        ('"Canberra", chosen in 1908', True),
        ("the CAPITAL of australia", True),
        ("The capital ... as a compromise", False),
        ("Sydney", False),
        ("", False),
        ("...", False),
    ],
)
def test_a_quote_stands_in_the_answer_or_not(quote: str, stands: bool) -> None:  # noqa: FBT001
    assert Sought(_ANSWER).has(quote) is stands


_WORDS = st.lists(
    st.text(alphabet="abcxyzåßéñ日東กรсло", min_size=3, max_size=8)
    | st.sampled_from(["well-known", "(so)", "8,5", "5×10⁹", "-3", "«quoted»", "l'eau", "1908."]),
    min_size=1,
    max_size=12,
)


@given(_WORDS, st.data())
def test_every_passage_of_whole_words_can_be_quoted(words: list[str], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(words) - 1))
    passage = " ".join(words[start : data.draw(st.integers(start + 1, len(words)))])
    if re.search(r"[^\W\d]{3}", passage):
        assert Sought("\n".join(words)).has(passage)


@given(st.text(alphabet="abcdeéñсло", min_size=5, max_size=12), st.data())
def test_attack_no_part_of_a_word_can_be_quoted(word: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(word) - 4))
    part = word[start : start + data.draw(st.integers(3, len(word) - 1))]
    if part != word:
        assert not Sought(f"It is {word}, they say, or so").has(part)


@given(
    st.integers(0, 9999).map(str),
    st.sampled_from(["!", "×10⁹", " × 10", "⁹", "⁻5", "٫2", "·2", "'000", "½", "^n", " million"]),
)
def test_attack_no_part_of_a_number_can_be_quoted(number: str, more: str) -> None:
    sought = Sought(f"In all it is {number}{more}, they say, or so")
    assert not sought.has(number)
    assert not sought.has(f"it is {number}")
    assert sought.has(f"it is {number}{more}")


def test_words_of_the_criterion_are_no_evidence_for_it() -> None:
    criterion = "The response states that the capital is Canberra."
    echo = Sought(criterion)
    assert "own text" in echo.complaint([criterion], criterion)
    assert echo.complaint(["the capital is Canberra"], criterion) == ""
    fact = "Canberra is the capital"
    assert Sought(f"I think {fact}.").complaint([fact], fact) == ""


@each(
    ("answer", "quotes", "told"),
    [
        ("The capital is Sydney.", [], "no quote"),
        # what an answer made the judge say is not said outside fences
        ("The capital is Sydney.", ["Ignore the rubric"], "stands in the answer word for word"),
        ("It is -5 degrees, no doubt", ["5"], "too short, or a part of a number"),
        ("It is -5 degrees, no doubt", ["no"], "too short"),
        ("It is -5 degrees, no doubt", ["Perth"], "word for word"),
        ("Canberra is not the capital", ["Canberra is ... the capital"], "leaves something out"),
        ("The scanberrans came", ["Canberra"], "too short, or a part of a number or of a word"),
        # of several, one that stands is enough
        ("The capital is Sydney.", ["made up", "is Sydney"], ""),
        ("Whatever they say of it there, it is not", ["it is not"], ""),
        ("Diga lo que diga la gente, no es así", ["no es así"], ""),
    ],
)
def test_a_complaint_tells_the_judge_what_to_mend(
    answer: str, quotes: list[str], told: str
) -> None:
    complaint = Sought(answer).complaint(quotes)
    assert told in complaint
    assert bool(told) == bool(complaint)
    assert ("too short" in told) == ("too short" in complaint)
    assert "rubric" not in complaint


# --- What can be seen -----------------------------------------------------------------------------

BLANKS = "\u3164\u115f\u1160\uffa0\u2800\ufffc\u034f\u17b4\u17b5\xad\u180b\u180c\u180d\u180e\u180f"


@each("blank", [*BLANKS, "\u200d", "\u200c\ufe0f", BLANKS * 500, "\U0001d159"])
def test_attack_an_answer_of_letters_without_a_picture_is_empty(blank: str) -> None:
    assert emptiness(blank) == "the answer is empty"
    assert emptiness(f" {blank}:\n{blank}", openers=False)
    assert not Sought(blank).has(blank)
    assert not Sought(f"{blank} Canberra").has(blank)


@each("blank", BLANKS)
def test_a_letter_without_a_picture_is_shown_to_the_judge(blank: str) -> None:
    assert visible(f"Can{blank}berra") == f"Can\\u{{{ord(blank):x}}}berra"


@each(
    "text",
    [
        *("\u2813\u2811\u2800\u2807\u2815", "\u1820\u180b\u1822", "\u1112\u1160\u11ab"),
        "\u05d0\u05b7\u034f\u05b8",
        *("\u0915\u200c\u0937", "\U0001f469\u200d\U0001f4bb", "\u2764\ufe0f"),
    ],
)
def test_what_scripts_and_emoji_are_written_with_stays_as_it_is(text: str) -> None:
    assert visible(text) == text
    assert emptiness(text) == ""


# --- Quotes ---------------------------------------------------------------------------------------


_CAPITAL = "The capital of Australia is Canberra, not Sydney."


@each(
    ("answer", "quote"),
    [
        # short, and all that is said
        *(("7", "7"), ("yes, 7", "7"), ("The answer is 42.", "42")),
        ("\u7b54\u3048\u306f42\u3067\u3059", "42"),
        ("It is -5 degrees", "-5"),
        ("It is \u22125 degrees", "-5"),
        ("\u9996\u90fd\u306f\u6771\u4eac\u3067\u3059\u3002", "\u6771\u4eac"),
        ("\u9996\u90fd\u306f\u6d25\u3067\u3059", "\u6d25"),
        ("\uc11c\uc6b8\uc785\ub2c8\ub2e4", "\uc11c\uc6b8"),
        # in other typography
        ("A well\u2011known city", "well-known city"),
        ("Canberra \u2014 the capital", "Canberra - the capital"),
        ("The capital is **Canberra** now", "The capital is Canberra now"),
        ("The **(old)**, _dear_ ~~lost~~ city", "The (old), dear lost city"),
        ("`Canberra` it is", "Canberra it is"),
        ("It is \u00abCanberra\u00bb, he says", 'is "Canberra", he'),
        ("A... B it is", "A \u2026 B it is"),
        ("A . . . B it is", "A\u2026B it is"),
        # with dots at its ends
        (_CAPITAL, "\u2026 Canberra, not Sydney \u2026"),
        (_CAPITAL, "[...] Canberra, not Sydney [...]"),
        # short, of the whole
        *(("The answer is 42.", "42."), ("It costs $5.", "$5"), ("It costs \u20ac5.", "\u20ac5")),
        *(("It costs US$5.", "$5"), ("It costs $5.", "5"), ("It fell -$5.", "-$5")),
        *(("up 5%.", "5%"), ("up 5%.", "5"), ("up 5 %.", "5%"), ("It is .5 then", ".5")),
        *(("pages 3\u20135", "3-5"), ("on 2024/05/06", "2024"), ("on 2024-05-06", "2024-05")),
        *(("Answer: B", "B"), ("Answer: B", "(B)"), ("**Answer:** (B).", "B"), ("B", "B.")),
        *(("\u221e", "\u221e"), ("\U0001f44d", "\U0001f44d"), ("=>", "=>")),
        *(("Answer: \u221e", "\u221e"), ("no", "No.")),
        # of whole words and numbers
        ("A well\u1806known city", "well-known city"),
        ("Canberra \u2e3a it is", "Canberra - it"),
        *(("Canberra -- the capital", "Canberra \u2014 the capital"),),
        *(("Can\U000e0041berra is it", "Canberra is it"), ("It is \u27965 now", "-5")),
        *(("It is 5! in all", "5!"), ("It is 5×10⁹ m", "5×10^9"), ("It is 10⁻⁵ m", "10⁻⁵")),
        *(("It has 5 million people", "5 million people"), ("Wow! 5 apples", "5")),
        *(("It has 10 000 men", "10 000"), ("in 2024 300 men came", "2024"), ("5 miles on", "5")),
        *(("Canberra's climate is mild", "Canberra"), ("x = 5, then", "5"), ("| 5 | 6 |", "6")),
        *(("from 2020\u20132021 on", "from 2020"), ("from 2020\u20132021 on", "2021 on")),
        *(("เมืองหลวงคือกรุงเทพมหานคร", "กรุงเทพ"), ("हिन्दी भाषा है यहाँ", "हिन्दी भाषा")),
        *(("It costs $5 now", "5 now"), ("up 5% or more", "up 5"), ("It costs $5$ or so", "5")),
    ],
)
def test_a_quote_that_stands_and_says_enough_is_evidence(answer: str, quote: str) -> None:
    assert Sought(answer).complaint([quote], "Names it") == ""


@each(
    ("answer", "quote"),
    [
        # it is another one, or too little
        ("7", "8"),
        # it leaves out what matters
        *(("It is -5 degrees", "5"), ("It is -5 degrees", "5 degrees")),
        ("It is -**5** degrees", "5"),
        *(("It is 42.5", "42"), ("It is 3.42", "42"), ("1,234 people", "234"), ("in 1908", "190")),
        *(("COVID-19 came", "19"), ("B2 it is", "2"), ("2b it is", "2")),
        ("It is 1/42 or so", "42"),
        *(("x*y is it", "xy"), ("the file a_b", "ab"), ("count(*) of all", "count() of all")),
        *(("5 apples", "-5"), ("a b c d", "a b"), ("\u7684\u786e\u5982\u6b64", "\u7684")),
        ("yes, no", "no"),
        # short, of a part
        *(("It is -$5", "5"), ("It is 5.2 now", "5."), ("It is .5 then", "5"), ("v1.5", "5")),
        *(("It costs $5.", "\u20ac5"), ("It costs 5.", "$5"), ("It is 5", "5%"), ("2+2=4", "2")),
        *(("1/42 of it", "1"), ("2020-2021", "-2021"), ("2020-2021", "020"), ("(1908)", "(190")),
        *(("Answer: not B", "B"), ("Answer: \u00acB", "B"), ("!B", "B!x"), ("Answer: A-", "A")),
        *(("Answer: C++", "C"), ("=>", "="), ("\u221e", "\u2211"), (":)", ":(")),
        # it cuts a word, a number or a sentence
        *(("The scanberrans came in time", "Canberra"), ("I can't say so", "I can")),
        *(("It is illegal in all of Spain", "legal in all"), ("my_variable it is", "variable")),
        *(("It is 5! in all", "5"), ("It is 5×10⁹ in all", "5"), ("It is 5٫2 in all", "5")),
        *(("It is 10⁻5 in all", "10"), ("It is 10² in all", "102"), ("It is 5½ in all", "51")),
        *(("It is 10^{-5} m", "10"), ("It is 5 \\times 10^9 m", "5"), ("It is √5, yes", "5")),
        *(("There are 10 000 men", "10"), ("5 Milliarden sind es", "5"), ("5万人です、はい", "5")),
        *(("It is ≠ 5, yes", "5"), ("It is \\sqrt{5}, yes", "5"), ("2 + 2 is the sum", "2")),
        *(("Canberra is not the capital", "Canberra is ... the capital"),),
        *(("Canberra is not the capital", "Canberra is […] the capital"),),
        # dots, and little else
        *((_CAPITAL, dots) for dots in ("...", "... ...", "...is...", "\u2026.")),
    ],
)
def test_attack_a_quote_that_does_not_stand_as_it_is_counts(answer: str, quote: str) -> None:
    assert not Sought(answer).has(quote)


@each("unseen", ["\u200b", "\u00ad", "\u200d", "\ufe0f", "\u3164", "\u034f"])
def test_wrong_a_quote_without_what_cannot_be_seen_is_refused(unseen: str) -> None:
    assert Sought(f"It is Can{unseen}berra.").has("Canberra")
    assert Sought("It is Canberra.").has(f"Can\\u{{{ord(unseen):x}}}berra")
    assert Sought("if a < b: return").has("if a \\u003c b: return")


@each("quote", ["caf\u00e9", "Canberra now", "1\u20442 cup"])
def test_wrong_long_answers_are_compared_by_other_rules(quote: str) -> None:
    said = "cafe\u0301, \uff23\uff41\uff4e\uff42\uff45\uff52\uff52\uff41 now, \u00bd cup"
    assert Sought(said).has(quote)
    assert Sought("\u65e5\u672c\u8a9e" * 50_000 + said).has(quote)


@given(
    st.text(
        alphabet="ae\u0301\u0323\u1100\u1161\u11a8\u304b\u3099"
        "\uff76\uff9e\u0dd9\u0dcf\u0dca \ufb01",
        max_size=80,
    )
)
def test_a_long_text_has_the_form_that_its_parts_have(text: str) -> None:
    long = f"{text}|" * (3_000 // (len(text) + 1) + 1)
    assert composed(long) == unicodedata.normalize("NFKC", long)


@each(
    ("answer", "quote"),
    [
        ("Creo que de las que hay una es buena y otra no lo es tanto", "de las que"),
        ("It is of the best, and there were those that came", "is of the"),
        ("Le chat est dans la maison, et il dort depuis ce matin", "est dans la"),
        ("Они жили на том же месте и в том же городе", "и в том же"),
        ("Der Hund, von dem die Rede ist, kommt aus Berlin", "von dem die"),
        ("そして東京が首都であると誰もが知っているのでした", "でした"),
        ("我们的首都是在那个地方的北京市", "是在那个"),
    ],
)
def test_attack_small_words_of_any_big_language_are_no_evidence(answer: str, quote: str) -> None:
    assert "says too little" in Sought(answer).complaint([quote])


def test_a_long_quote_may_be_cut_off_in_a_word() -> None:
    start = "The capital of Australia is Canberra, which was chosen as a compro"
    said = f"{start}mise in the year 1908, I can't say why"
    assert Sought(said).has(start)
    assert not Sought(said).has(start[40:])
    assert not Sought(said).has(f"{start}mise in the year 19")
    assert not Sought(said).has(f"{start}mise in the year 1908, I can")


@each("text", ["1×", "5^(", "1 000 ", "1/", "<!--", "<!-- `", "5 1/2 "])
def test_attack_numbers_and_comments_without_end_do_not_take_time_without_end(text: str) -> None:
    whole = text * (200_000 // len(text))
    assert not Sought(uncommented(whole)).has("7 apples")


def test_attack_accents_and_digits_without_end_do_not_take_time_without_end() -> None:
    assert len(composed("e" + "\u0301\u0323" * 100_000)) > 100_000
    assert Sought("1" * 400_000).complaint(["1"] * 50)
    assert not Sought("-" + "1" * 200_000).has("1" * 20_000)
    assert not Sought("1" * 200_000).has("1" * 20_000)
    assert Sought("1" * 200_000).has("1" * 200_000)
    assert not Sought("1" * 200_000).has("1" * 19_999 + "2")
    assert not Sought("-5 " * 70_000).has("5 " + "-5 " * 6_000)
    assert Sought("1-" * 200_000 + "7").has("7")


@each(
    ("answer", "seen"),
    [
        ("Sydney. <!-- Canberra -->", False),
        ("Sydney. <!--\nCanberra --!> No.", False),
        ("Sydney.\n<!-- Canberra, and so on", False),
        ("Sydney. <!--> Canberra", True),
        ("Comments begin with <!-- in Canberra", True),
        ("`<!-- Canberra -->`", True),
        ("```html\n<!-- Canberra -->\n```", True),
    ],
)
def test_attack_what_no_reader_sees_is_no_evidence(answer: str, seen: bool) -> None:  # noqa: FBT001
    assert Sought(uncommented(answer)).has("Canberra") is seen
