r"""Finding the answer inside an answer: the box, the tag, the last line, what a pattern captures.

A model reasons before it answers. ``extract=`` says where the answer proper stands, ``pick=`` which
one counts where there are several. Where nothing is found, a comparison gives 0.0.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Literal, TypeAlias, TypeVar

from assay.errors import InputError, nearest
from assay.text.normal_form import as_text
from assay.text.pattern import compile_pattern, find_all

Pick: TypeAlias = Literal["first", "last", "only"]
"""Which candidate counts; ``only`` finds none where there are two different ones."""

EXTRACTS = ("boxed", "answer_tag", "last_line")
"""The named places an answer may stand in; any other ``extract=`` is a pattern."""

_PICKS = ("first", "last", "only")
_BRACE = re.compile(r"\\(?:boxed|fbox)\s{0,8}\{|\\[\\{}]|[{}]")
IN_WORDS = r"\\(?:text\w{0,2}|math(?:rm|bf)|mbox)\s*\{"
"""Where words begin in a formula, as part of a pattern."""
_WORDS = re.compile(rf"{IN_WORDS}([^{{}}]*)\}}\Z")
_DOLLARS = re.compile(r"\A[\s$]+|(?<![\\\s$])[\s$]+\Z")
_DISPLAYED = re.compile(
    r"\\\[[^\\]*+(?:\\(?![\[\]])[^\\]*+)*+\\\]|\$\$[^$]*+\$\$"
    r"|\\begin\{(?:align|aligned|equation|gather)\*?\}"
    r"[^\\]*+(?:\\(?!begin|end)[^\\]*+)*+\\end\{\w+\*?\}"
)
_TAG = re.compile(r"<(/?)answer\s{0,8}>", re.IGNORECASE)
_STATEMENT = re.compile(
    r"(?:\banswers?(?:\ (?:is|are)\b|\s?[:=\uff1a])"
    r"|\u7b54\u6848\s?[:=\uff1a\u662f\u4e3a]|\u7b54\u3048\s?[:=\uff1a\u306f])"
    r"[ \t:=*_\uff1a]*+(?:(?<=[:*])\r?\n\s{0,20}(?:```\w{0,9}\n)?)?"
    r"((?:(?!\banswer(?:\ is\b|\s?[:=]))[^\n]){1,2000})",
    re.IGNORECASE,
)
_NAME = re.compile(r"[A-Za-z_]+\Z")

T = TypeVar("T")


def extract_answer(text: object, extract: str | None, *, pick: Pick | None = None) -> str | None:
    r"""Return the part of a text that is the answer proper.

    Args:
        text: What the model said.
        extract: Where the answer stands. ``boxed``: inside ``\boxed{...}`` or ``\fbox{...}``, of
            boxes in boxes the inner one. ``answer_tag``: between ``<answer>`` and ``</answer>``.
            ``last_line``: the last line that is not blank. Anything else is an RE2 pattern: its
            group 1, or all it matches where it has no group. None: the whole text.
        pick: Which one where there are several; the last by default. ``only``: none, unless all
            say the same.

    Returns:
        The part, without white space around it (so possibly empty: an empty box), or None.

    Raises:
        InputError: The pattern or ``pick`` is invalid.
    """
    answer = as_text(text)
    if extract is None:
        return answer
    check_pick(pick)
    found = [part.strip() for part in extractions(answer, extract)]
    return choose(found, pick or "last", key=str)


def extractions(text: str, extract: str) -> list[str]:
    """Return every part of a text that ``extract`` finds, in order (see `extract_answer`)."""
    if extract == "boxed":
        return [_plain(text[start:end]) for start, end in _box_places(text)]
    if extract == "answer_tag":
        return _tags(text)
    if extract == "last_line":
        last = last_line(text)
        return [last] if last else []
    if _NAME.match(extract):
        raise InputError(
            f"unknown extract {extract!r}",
            hint=f"{nearest(extract, list(EXTRACTS))}; a pattern needs more than plain letters",
        )
    return find_all(compile_pattern(extract), text)


def answer_text(answer: object, extract: str | None, pick: Pick | None) -> str | None:
    """Return what a comparison of whole texts compares."""
    if extract is None:
        if pick is not None:
            raise InputError(
                f"pick={pick!r} has nothing to pick from", hint="say with extract= where to look"
            )
        return as_text(answer)
    return extract_answer(answer, extract, pick=pick)


NOT = r"(?:\b(?:not|never)|n['\u2019]t)\b"
"""What denies that the next thing is the answer, as part of a pattern."""
_THOUGHT = re.compile(
    r".*(?:</(?:think(?:ing)?|thought|reasoning)>|\[/THINK\])", re.DOTALL | re.IGNORECASE
)
_STRUCK = re.compile(r"(?<!~)~~(?![~\s])[^~\n]{1,300}(?<!\s)~~(?!~)")
_UNSEEN = (("<!--", "-->"), ("<del>", "</del>"), ("<s>", "</s>"))


def said(text: str) -> str:
    """What a text says to its reader: no thoughts (``<think>``), comments or deletions."""
    if "<" in text or "[/" in text:
        text = after_thought(text)
        for opening, closing in _UNSEEN:  # up to the last end, so that no search is in vain
            before, end, rest = text.rpartition(closing)
            hidden = f"{opening}.*?{closing}"
            text = re.sub(hidden, "", before + end, flags=re.DOTALL) + rest
    return _STRUCK.sub(" ", text) if "~~" in text else text


def after_thought(text: str) -> str:
    """What a model says after it thought; all where it says nothing then."""
    thought = _THOUGHT.match(text)
    return text[thought.end() :] if thought and text[thought.end() :].strip() else text


def check_pick(pick: str | None) -> None:
    """Reject a ``pick`` other than ``first``, ``last`` and ``only``."""
    if pick is not None and pick not in _PICKS:
        raise InputError(f"unknown pick {pick!r}", hint=nearest(pick, list(_PICKS)))


def choose(candidates: Iterable[T], pick: Pick, *, key: Callable[[T], Hashable]) -> T | None:
    """Choose one of the candidates found in an answer."""
    if pick == "last":
        return next(iter(deque(candidates, maxlen=1)), None)
    every = iter(candidates)
    first = next(every, None)
    if pick == "only" and first is not None:
        same = key(first)
        if any(key(candidate) != same for candidate in every):
            return None
    return first


def _box_places(text: str) -> list[tuple[int, int]]:
    """Find the innermost boxes in one pass; a box that never closes is none."""
    found: list[tuple[int, int]] = []
    open_braces: list[int] = []  # where a box's content begins, or -1 for any other brace
    holds_a_box = [False]  # whether a box has closed inside each open brace, outermost first
    for match in _BRACE.finditer(text):
        brace = match[0]
        if brace[-1] == "{" and brace != "\\{":
            open_braces.append(-1 if brace == "{" else match.end())
            holds_a_box.append(False)
        elif brace == "}" and open_braces:
            start = open_braces.pop()
            inner = holds_a_box.pop()
            if start >= 0 and not inner:
                found.append((start, match.start()))
            holds_a_box[-1] = holds_a_box[-1] or inner or start >= 0
    return found


_BESIDE = re.compile(r"\}(?:[ $]|\\[,;: ()]|\\q?quad)*\\f?box(?:ed)?\{")
_JOINT = re.compile(r"[,;&/]|\b(?:and|or)\b")
_TURN = re.compile(
    r"[.:?!]|\n\s*\n|\b(?:no|not|but|wait|actually|instead|rather|wrong"
    r"|so|thus|hence|then|therefore|since|because|gives?|is|are|was|means?|which|where|we)\b",
    re.IGNORECASE,
)
_MOST_BETWEEN = 60  # characters; boxes further apart are no list


def boxed_together(text: str, pick: Pick | None) -> str | None:
    r"""What the last box says, and those before it in one sentence: ``\boxed{2} and \boxed{3}``.

    With ``pick``, of each box by itself. None where there is no box, or ``pick`` finds none.
    """
    places = _box_places(text)
    places = [(a, b) for a, b in places if text[a:b].strip()] or places
    if not places or pick is not None:
        return choose([_plain(text[a:b]) for a, b in places], pick or "last", key=str)
    first = len(places) - 1
    while first and _are_joined(text[places[first - 1][1] : places[first][0]]):
        first -= 1
    return ", ".join(dict.fromkeys(_plain(text[start:end]) for start, end in places[first:]))


def _are_joined(between: str) -> bool:
    """Whether what stands between two boxes makes one answer of them."""
    if _BESIDE.fullmatch(between):
        return True
    if len(between) > _MOST_BETWEEN:
        return False
    return _JOINT.search(between) is not None and _TURN.search(between) is None


def _plain(content: str) -> str:
    r"""Unwrap ``\text{...}`` and dollar signs around all of a box's content."""
    content = _DOLLARS.sub("", content).strip()
    match = _WORDS.match(content)
    return match[1] if match else content


def _tags(text: str) -> list[str]:
    found: list[str] = []
    start = -1
    for match in _TAG.finditer(text):
        if not match[1]:
            start = match.end()
        elif start >= 0:
            found.append(text[start : match.start()])
            start = -1
    return found


def statements(text: str) -> list[tuple[str, str]]:
    """Find where a text says *answer is* or *answer:*; the sentence and what it says, in order."""
    return [(match[0], match[1]) for match in _STATEMENT.finditer(text)]


def in_one_line(text: str) -> str:
    """Write each displayed formula in one line, which is then the line of the text it ends."""
    if "\n" not in text:
        return text
    return _DISPLAYED.sub(lambda formula: " ".join(formula[0].split()), text)


def last_line(text: str) -> str:
    """Return the last line that is not blank and ends no code fence, or an empty string."""
    text = _FENCE_END.sub("", text.rstrip()).rstrip()
    return text[max(text.rfind("\n"), text.rfind("\r")) + 1 :]


_FENCE_END = re.compile(r"\n[ \t]{0,8}(?:```|~~~)\Z")
_PART, _LONGEST = 32_768, 8_192


def in_parts(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """All matches, as `finditer` gives them, of one part of a long text after the other.

    One search through megabytes would hold up every other thread for seconds. What a match must
    have is within `_LONGEST` characters of its beginning; it may be longer.
    """
    if len(text) <= _PART + _LONGEST:
        yield from pattern.finditer(text)
        return
    at = 0
    for end in range(_PART, len(text) + _PART, _PART):
        while at < end and (near := pattern.search(text, at, end + _LONGEST)):
            if near.start() >= end:
                break
            match = pattern.match(text, near.start())  # where the part ends, the text does not
            if match is not None:
                yield match
            at = near.start() + 1 if match is None else max(match.end(), near.start() + 1)
        at = max(at, end)
