r"""What is decided before any judge is asked: an answer without content gets nothing.

Nor does one that is longer than a judge reads: its length is its own doing.

A single colon or "Solution:" wins up to nine in ten verdicts of some judges (Zhao et al. 2025,
"One Token to Fool LLM-as-a-Judge", arXiv:2507.08794), and more votes do not help. What counts is
what can be seen: a blank letter, a full-width "Solution:" or ``<br>`` is no more than a space.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from assay.graders.judges.fence import MAX_MATERIAL, composed, unhidden
from assay.scoring.json_safe import Json, noted
from assay.scoring.results import SubScore

_OPENERS = (
    *("answer", "the answer is", "final answer", "my answer", "here is my answer"),
    *("solution", "the solution is", "here is the solution", "thought process"),
    *("thinking process", "let me think", "let us think", "lets think", "step by step"),
    *("lets solve this problem step by step", "let us solve this problem step by step"),
    *("let me solve this step by step", "to solve this problem", "here you go", "i will answer"),
    *("lösung", "antwort", "respuesta", "solución", "réponse", "solution finale"),
    *("risposta", "soluzione", "resposta", "solução", "ответ", "решение", "حل", "उत्तर"),
    *("풀이", "정답", "해설"),
)
_UNSPACED = "解[析説]?|回答|答[案え]?|思考过程|让我们一步一步思考|かいせつ|こたえ"
_OFTEN_ANSWERS = (
    *("first", "output", "response", "step 1", "explanation", "reasoning"),
    *("certainly", "of course", "sure", "okay"),
)
"""These may be the whole of a right answer: they announce one only with a colon or dots behind, or
a courtesy with an exclamation mark."""
_COURTESIES = ("sure", "okay")
_PROMISES = frozenset(("answer", "answers", "solution", "explanation", "reasoning")).union(
    ("response", "result", "step", "steps", "process")
)
_AROUND_PROMISES = _PROMISES.union(
    ("a", "an", "and", "as", "below", "break", "by", "certainly", "course", "detailed", "down"),
    ("final", "follows", "full", "heres", "here", "i", "is", "let", "lets", "me", "my", "now"),
    ("of", "okay", "our", "problem", "question", "so", "solve", "sure", "the", "then"),
    ("therefore", "think", "this", "thought", "thus", "to", "us", "we", "will", "your"),
)

_WORD = re.compile(r"[^\W_]+")
_APOSTROPHE = re.compile(r"(?<=[^\W_])['\u2019](?=[^\W_])")


def _any_of(openers: Iterable[str]) -> str:
    """A pattern of one of them, whatever stands between its words."""
    longest_first = sorted(openers, key=len, reverse=True)
    return "|".join(r"[\W_]+".join(_WORD.findall(composed(one))) for one in longest_first)


_OPENER = re.compile(
    rf"[\W_]*(?:(?:{_any_of(_OPENERS)}|(?:{_UNSPACED})+)|(?P<often>{_any_of(_OFTEN_ANSWERS)}))(?![^\W_])"
)
_MARKUP_SIGNS = ("<", "&", "\\", "`", "~~~")
_WRAPPER = re.compile(
    "br|wbr|think|thinking|thoughts?|reasoning|reflection|scratchpad|analysis|answer|final"
    "|final_answer|output|response|result|solution|explanation",
    re.IGNORECASE,
)
_CLOSING = re.compile(r"</\s?([^\W\d][\w.:-]{0,40})\s?>")
_MARKUP = re.compile(
    # A tag with attributes may be what was asked for.
    r"<(?P<end>/?)\s?(?P<tag>[^\W\d][\w.:-]{0,40})\s?/?>"
    r"|&(?P<entity>#?\w{1,31});"
    r"|\\(?:begin|end)\{[a-zA-Z]{1,20}\*?\}"
    r"|\\(?P<command>boxed|[fm]box|text(?:bf|it|rm|tt|sf)?|math(?:bf|it|rm|sf|tt)|emph|q?quad|left|right"
    r"|displaystyle|underline)(?![a-zA-Z])(?P<held>\s{0,9}(?=[{}]))?"
    r"|^[ \t]{0,8}(?:```+|~~~+)[ \t]?(?:python|py|json|te?xt|plain(?:text)?|markdown|md|bash|sh"
    r"|shell|console|html|xml|ya?ml|(?:la)?tex|[jt]s|(?:java|type)script|c|cpp|c\+\+|java|go|rust"
    r"|sql|ruby|php|diff|output)?[ \t]*$",
    re.MULTILINE | re.IGNORECASE,
)
# Runs of backticks are taken whole (`+` after a quantifier), so that no text takes long.
_CODE = re.compile(
    r"^[ \t]{0,8}(?P<fence>`{3,}+|~{3,}+)[^`\n]*+\n(?P<block>(?s:.*?))(?:^[ \t]{0,8}(?P=fence)|\Z)"
    r"|(?<!`)(?P<ticks>`++)(?P<span>[^`]++)(?P=ticks)(?!`)"
    r"|(?<!`)``(?P<quoted> ?` ?)``(?!`)",
    re.MULTILINE,
)
# One that is not closed goes on to the end where it begins a line, and else is text.
_COMMENT = re.compile(
    rf"<!--(?:-?>|(?s:.*?)--!?>)|^ {{0,3}}<!--(?s:.*)|{_CODE.pattern}", re.MULTILINE
)
_SIGN = "\u25a1"
"""Stands for markup that is itself the answer: it has content, but is not a word."""
_STOPS = frozenset(".:,;!?")

_CONTENT = frozenset({"Lu", "Ll", "Lt", "Lm", "Lo", "Nd", "Nl", "No", "So"})


@dataclass(frozen=True, slots=True)
class Unasked:
    """Why an answer is worth nothing, whatever a judge would say."""

    why: str
    # Whether it is more than a judge reads. To break a penalty's judge so is no way around the
    # penalty.
    is_overlong: bool = False

    def node(
        self,
        name: str,
        metadata: Mapping[str, Json],
        *,
        children: Sequence[SubScore] | None = None,
        passed: bool | None = None,
    ) -> SubScore:
        """What an answer is worth that nobody is asked about: nothing."""
        over = noted(_outcome="overflow" if self.is_overlong else "")
        kept: dict[str, Json] = {**metadata, "asked": False, "why": self.why, **over}
        return SubScore(name, 0.0, metadata=kept, children=children, reason=self.why, passed=passed)


def unasked(
    answer: str, *, openers: bool = True, beside: int = 0, most: int = MAX_MATERIAL
) -> Unasked | None:
    """Why nobody is asked about an answer; None where somebody is.

    ``beside``: Characters of what is shown with it. Where that is more than the answer, it is not
    the answer's doing that both together are too much.
    """
    size = len(answer)
    if size + beside > most and size > beside:
        why = f"the answer has {size:,} characters: a judge reads at most {most:,}, and all or none"
        return Unasked(why, is_overlong=True)
    why = emptiness(answer, openers=openers)
    return Unasked(why) if why else None


def emptiness(answer: str, *, openers: bool = True) -> str:
    """Why an answer has no content to be judged, or ""."""
    text = composed(unhidden(answer))
    if any(sign in text for sign in _MARKUP_SIGNS):
        text = _without_markup(text)
    if _WORD.search(text) is None:
        if any(map(_has_content, set(text))):
            return ""
        is_silent = not answer.strip() or not text.strip()
        return "the answer is empty" if is_silent else "the answer has no words"
    return "the answer only announces an answer" if openers and _announces(text) else ""


def uncommented(text: str) -> str:
    """A text without the comments of HTML, which no reader of it sees; in code they are seen."""
    if "<!--" not in text:
        return text
    return _COMMENT.sub(
        lambda found: " " if found[0].lstrip(" ").startswith("<!--") else found[0], text
    )


def _without_markup(text: str) -> str:
    text = _CODE.sub(_code, text)
    paired = {name.lower() for name in _CLOSING.findall(text)}

    def blank(found: re.Match[str]) -> str:
        if entity := found["entity"]:
            return _entity(entity)
        if found["command"] and found["held"] is None:
            return _SIGN
        tag = found["tag"]
        is_content = tag and tag.lower() not in paired and not _WRAPPER.fullmatch(tag)
        return found[0] if is_content else " "

    return _MARKUP.sub(blank, text)


def _code(found: re.Match[str]) -> str:
    """What is seen of code: a sign where it has no words, or markup that is meant as it stands."""
    code = found["block"] or found["span"] or found["quoted"] or ""
    if not code.strip():
        return found[0]
    is_prose = _WORD.search(code) is not None and _MARKUP.search(code) is None
    return found[0] if is_prose else f" {_SIGN} "


def _entity(name: str) -> str:
    """What is seen of an entity; a stop in disguise is a stop, and a space a space."""
    import html

    seen = composed(unhidden(html.unescape(f"&{name};")))
    is_sign = len(seen) == 1 and unicodedata.category(seen)[0] in "PS" and seen not in _STOPS
    return _SIGN if is_sign else seen


def _has_content(character: str) -> bool:
    category = unicodedata.category(character)
    return category in _CONTENT or (category in ("Sm", "Sc") and not character.isascii())


def _announces(text: str) -> bool:
    """Whether a text consists of openers, one after the other."""
    text, place, often = _APOSTROPHE.sub("", text).lower(), 0, ""
    while found := _OPENER.match(text, place):
        place, often = found.end(), found["often"]
    if _promises(text):
        return True
    behind = text[place:]
    if not place or _WORD.search(behind) or any(map(_has_content, set(behind))):
        return False
    marks = (":", "..", "!") if often in _COURTESIES else (":", "..")
    return not often or any(mark in behind for mark in marks)


def _promises(text: str) -> bool:
    """Whether a text of such words alone ends where what they promise should stand."""
    words = _WORD.findall(text)
    if not _PROMISES.intersection(words) or not _AROUND_PROMISES.issuperset(words):
        return False
    ends = text.rstrip("*_ \t\r\n").endswith((":", "..", " is"))
    return ends and not any(map(_has_content, set(_WORD.sub("", text))))
