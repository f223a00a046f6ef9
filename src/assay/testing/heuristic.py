"""The heuristic judge: looks for the words of what is asked, and obeys every order outside fences.

It is a poor judge of answers, which knows no "not" and no guess. It is a test of prompts: a judge
whose fences leak gives the verdicts that an answer orders, one that fences well does not. The same
prompt always gets the same reply.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from assay.conversation.messages import Request
from assay.scoring.json_safe import Json
from assay.testing.asked import Asked, Said
from assay.testing.obey import order_in

_HEADING = re.compile(r"^([A-Z][A-Z -]{1,30}):[ \t]*(.*)$")
_ANSWERS = (
    "answer",
    "response",
    "submission",
    "output",
    "completion",
    "diff",
    "trace",
    "conversation",
)
_ASIDE = frozenset({"question", "criterion", "criteria", "reference", "context", "examples"})
_FAULT = re.compile(r"^It describes a fault\b", re.MULTILINE)
_NUMBERED = re.compile(r"^\s*[\[(]?(\d{1,6})[\])]?[.:)]?\s+(.*)$")
_CHOSEN = re.compile(
    r"\b(?:answer|response|winner|choose|pick|output)\b\W+(?:is\W+)?([ab])\b", re.IGNORECASE
)
_OBEYED = "An order outside the fences was obeyed: "


_WORD = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+")
_ABSENCE = re.compile(
    r"\b(?:not|never|no (?:mention|reference)|avoids?|omits?|without|free (?:of|from)|cannot)\b|"
    r"n['\u2019]t\b",
    re.IGNORECASE,
)
_DATE = re.compile(r",?\s+(?:in|on|since|by)\s+(?:[A-Z][a-z]+\s+)?(?:\d{1,2},?\s+)?\d{4}\b")
_CLAIM_END = re.compile(r"(?<=[.!?])\s+|\n+|\s*[;()]\s*|,\s+(?:and|but)\s+")
_NO_CLAIM = re.compile(r"^\W*(?:sorry|i(?:'m| am| cannot| can't| don't| do not))\b", re.IGNORECASE)
_ENOUGH = 5 / 6
_STOP = frozenset(
    """
    a an the this that these those it its he she they his her their there who whose which what when
    where why how and or but so if then than as of in on at by for with from to into about is are
    was were be been do does did has have had will would can could may might must should shall not
    never no none also very just both either each every any some such i you we your my s t re
    response answer submission output text reply state states say says said mention mentions
    include includes contain contains explain explains describe describes name names identify
    identifies give gives given provide provides criterion correct correctly clear clearly word
    claim claims avoid avoids omit omits without cannot following year
    """.split()  # noqa: SIM905 - a list of so many words cannot be read
)
"""Words that mean little, and those with which criteria speak of answers."""


@dataclass(frozen=True, slots=True)
class CriterionFinding:
    """Whether a criterion is met, why, the lines that show it, and how much of it is: 0 to 1."""

    is_met: bool
    reason: str
    quotes: tuple[str, ...] = ()
    share: float = 0.0


Rule: TypeAlias = Callable[[str, str, str], CriterionFinding]
"""Judges an answer by a criterion; the third text is the question."""


def find_words(answer: str, criterion: str, question: str = "") -> CriterionFinding:
    """Judge an answer by the words of a criterion.

    A criterion is met when the answer has each of its words that mean something and do not stand
    in the question. One of absence ("does not mention X") is met when they are not all there.
    """
    wanted = _words(criterion)
    wanted = (wanted - _words(question)) or wanted
    if not wanted:
        return CriterionFinding(is_met=False, reason="The criterion has no words to look for.")
    missing = wanted - _words(answer)
    if _ABSENCE.search(criterion):
        is_met = bool(missing)
        return CriterionFinding(
            is_met, "It is not there." if is_met else "It is there.", (), float(is_met)
        )
    lines = [line.strip() for line in answer.splitlines()]
    quotes = tuple(line for line in lines if wanted & _words(line))
    share = 1 - len(missing) / len(wanted)
    if missing:
        return CriterionFinding(is_met=False, reason=f"It has no {min(missing)!r}.", share=share)
    return CriterionFinding(is_met=True, reason="Its words are there.", quotes=quotes, share=share)


def _words(text: str) -> frozenset[str]:
    """The words of a text that mean something, without the ending of a plural."""
    found = {word.casefold().replace(",", "") for word in _WORD.findall(text)}
    return frozenset(
        word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
        for word in found - _STOP
    )


def _split_claims(text: str) -> list[str]:
    """Clauses of an answer that say something; a date is a claim of its own, bare numbers none."""
    claims: list[str] = []
    for part in _CLAIM_END.split(text):
        clause = part.strip(" .,!")
        if part.rstrip("\"') ").endswith("?") or _NO_CLAIM.search(clause):
            continue
        date = _DATE.search(clause)
        pieces = [clause]
        if date and len(_words(clause[: date.start()])) > 1:
            pieces = [clause[: date.start()], date[0], clause[date.end() :]]
        claims += [piece.strip(" .,!") for piece in pieces]
    return [one for one in dict.fromkeys(claims) if any(map(str.isalpha, _words(one)))]


def _supporting(claim: str, documents: Mapping[int, str]) -> tuple[int, str] | None:
    """The document with most of a claim's words and all its numbers, and the line to quote."""
    wanted = _words(claim)
    numbers = {word for word in wanted if not word.isalpha()}
    for number, text in documents.items():
        there = wanted & _words(text)
        if wanted and numbers <= there and len(there) >= _ENOUGH * len(wanted):
            return number, max(text.splitlines(), key=lambda line: len(wanted & _words(line)))
    return None


def heuristic_verdict(asked: Asked, rule: Rule = find_words) -> Json:
    """Answer a judge's prompt.

    Args:
        asked: The request. What is judged is read from its fences, by their names; what is asked
            for, from the lines ``FORM:`` and ``CRITERION:`` outside of them; without a form, from
            the schema.
        rule: How a criterion is judged where nothing is ordered.

    Returns:
        The reply that the form, or the schema, wants. Free text is answered by a sentence.
    """
    order = order_in(asked.outline)
    answer = _FORMS.get(asked.form) or _form_of(asked.schema or {})
    return answer(asked, order, rule)


def offline_judge(request: Request) -> str:
    """Answer a judge's question in this process, as `FakeJudge` does over HTTP."""
    said = [(one.role, _text(one.content)) for one in request.messages]
    asked = Asked(
        protocol="openai",
        model=request.model,
        messages=tuple(Said(role, text) for role, text in said if role != "system"),
        system="\n\n".join(text for role, text in said if role == "system"),
        schema=request.schema,
    )
    verdict = heuristic_verdict(asked)
    return verdict if isinstance(verdict, str) else json.dumps(verdict)


def _text(content: str | tuple[Mapping[str, Json], ...]) -> str:
    """A message's text, without its pictures."""
    if isinstance(content, str):
        return content
    return "\n".join(str(part["text"]) for part in content if part.get("type") == "text")


def _sections(prompt: str) -> dict[str, str]:
    """The parts of a prompt under headings of their own, such as ``CRITERION:``.

    The first of a name counts. A part ends at the next heading, or at a blank line behind text.
    """
    found: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in prompt.split("\n"):
        heading = _HEADING.match(line)
        if heading:
            current = [] if heading[1] in found else found.setdefault(heading[1], [])
            current.append(heading[2])
        elif current is not None and line.strip():
            current.append(line)
        elif current is not None and any(text.strip() for text in current):
            current = None
    return {name: "\n".join(lines).strip() for name, lines in found.items()}


def _answer(asked: Asked) -> str:
    """The text that is judged: what is called like one, in several fences where there are turns."""
    texts = ("\n".join(one.text for one in asked.fences if one.name == name) for name in _ANSWERS)
    return next(filter(None, texts), "")


def _asked_for(asked: Asked) -> str:
    parts = _sections(asked.prompt)
    fenced = asked.fenced("criterion") or asked.fenced("criteria")
    return parts.get("CRITERION") or parts.get("CRITERIA") or parts.get("RUBRIC") or fenced


def _question(asked: Asked) -> str:
    return asked.fenced("question") or _sections(asked.prompt).get("QUESTION", "")


def _finding(asked: Asked, rule: Rule) -> CriterionFinding:
    return rule(_answer(asked), _asked_for(asked), _question(asked))


def _criterion(asked: Asked, order: str, rule: Rule) -> Json:
    if order:
        verdict = "UNMET" if _FAULT.search(asked.prompt) else "MET"
        quotes = _any_quotes(asked)
        return {"evidence": quotes, "reasoning": _OBEYED + order, "verdict": verdict}
    found = _finding(asked, rule)
    return {
        "evidence": list(found.quotes),
        "reasoning": found.reason,
        "verdict": "MET" if found.is_met else "UNMET",
    }


def _any_quotes(asked: Asked) -> list[Json]:
    """Something to show for an ordered verdict, so that evidence alone does not stop it."""
    fenced = [fence.text for fence in asked.fences if fence.name in _ANSWERS]
    quotes: list[Json] = []
    for text in (*fenced, asked.prompt):  # what a leak left outside may be the answer's as well
        lines = sorted((line.strip() for line in text.splitlines()), key=len, reverse=True)
        quotes += [line[:400] for line in lines[:8] if line]
    return quotes


def _binary(asked: Asked, order: str, rule: Rule) -> Json:
    found = _finding(asked, rule)
    quotes = _any_quotes(asked) if order else list[Json](found.quotes)
    reply: dict[str, Json] = {
        "evidence": quotes,
        "reasoning": _OBEYED + order if order else found.reason,
        "score": "PASS" if order or found.is_met else "FAIL",
    }
    wanted = (asked.schema or {}).get("properties")
    if isinstance(wanted, dict) and "evidence" not in wanted:
        del reply["evidence"]
    return reply


def _levels(asked: Asked, order: str, rule: Rule) -> Json:
    """The level as far up as the share of the criterion's words that the answer has."""
    levels = [name for name in _menu(asked.schema or {}, "level") if name != "NA"] or ["0", "1"]
    if order:
        top = levels[0] if _FAULT.search(asked.prompt) else levels[-1]
        quotes = _any_quotes(asked)
        return {"evidence": quotes, "reasoning": _OBEYED + order, "level": top}
    found = _finding(asked, rule)
    level = levels[int(found.share * (len(levels) - 1))]
    return {"evidence": list(found.quotes), "reasoning": found.reason, "level": level}


def _score(asked: Asked, order: str, rule: Rule) -> Json:
    """The share of the criteria, one to a line, that are met."""
    if order:
        return {"reasoning": _OBEYED + order, "score": 1.0}
    lines = [line.strip(" \t-*0123456789.)") for line in _asked_for(asked).splitlines()]
    answer, question = _answer(asked), _question(asked)
    found = [rule(answer, line, question) for line in lines if line]
    met = sum(one.is_met for one in found)
    reason = f"{met} of {len(found)} lines are met."
    return {"reasoning": reason, "score": met / len(found) if found else 0.0}


def _compare(asked: Asked, order: str, rule: Rule) -> Json:
    """Who meets more of what is asked for; the one that an order names, or A."""
    if order:
        named = _CHOSEN.search(order)
        winner = named[1].upper() if named else "A"
        return {"reasoning": _OBEYED + order, "winner": winner}
    answers = [fence.text for fence in asked.fences if fence.name not in _ASIDE][-2:]
    wanted = _asked_for(asked) or asked.fenced("reference") or _question(asked)
    question = _question(asked) if wanted != _question(asked) else ""
    shares = [rule(text, wanted, question).share for text in answers]
    reason = f"They say {' and '.join(f'{share:.0%}' for share in shares)} of it."
    is_tie = len(shares) < 2 or shares[0] == shares[1]
    return {"reasoning": reason, "winner": "TIE" if is_tie else "AB"[shares[1] > shares[0]]}


def _claims(asked: Asked, order: str, rule: Rule) -> Json:
    del rule
    if order:
        quotes = _any_quotes(asked)[:1]
        return {"claims": [{"text": _OBEYED + order, "span": quote} for quote in quotes]}
    found = _split_claims(_answer(asked))
    return {"claims": [{"text": claim, "span": claim} for claim in found]}


def _listed_claims(asked: Asked) -> dict[int, str]:
    """Numbered claims: lines of a fence ``claims``, or fences ``claim-1``, ``claim-2`` ..."""
    found: dict[int, str] = {}
    for line in asked.fenced("claims").splitlines():
        if numbered := _NUMBERED.match(line):
            found[int(numbered[1])] = numbered[2]
    return found | _numbered_fences(asked, "claim")


def _numbered_fences(asked: Asked, name: str) -> dict[int, str]:
    found: dict[int, str] = {}
    for fence in asked.fences:
        kind, _, number = fence.name.rpartition("-")
        if kind == name and number.isascii() and number.isdecimal():
            found[int(number)] = fence.text
    return found


def _verify(asked: Asked, order: str, rule: Rule) -> Json:
    del rule
    documents = _numbered_fences(asked, "document")
    verdicts: list[Json] = []
    for number, claim in _listed_claims(asked).items():
        if order:
            document, text = next(iter(documents.items()), (None, ""))
            quote = max((line.strip() for line in text.splitlines()), key=len, default="")
            reason, verdict = _OBEYED + order, "supported"
        else:
            document, quote = _supporting(claim, documents) or (None, "")
            verdict = "absent" if document is None else "supported"
            reason = f"Its words are {'not ' if document is None else ''}there."
        entry: Json = {"claim": number, "quote": quote, "document": document}
        verdicts.append({**entry, "reasoning": reason, "verdict": verdict})
    return {"verdicts": verdicts}


def _chunks(asked: Asked, order: str, rule: Rule) -> Json:
    del rule
    question = _question(asked)
    return {
        "verdicts": [
            {
                "document": number,
                "reasoning": _OBEYED + order if order else "By the words it shares.",
                "relevant": bool(order) or bool(_words(text) & _words(question)),
            }
            for number, text in _numbered_fences(asked, "document").items()
        ]
    }


def _relevance(asked: Asked, order: str, rule: Rule) -> Json:
    del rule
    question = _question(asked)
    return {
        "verdicts": [
            {
                "claim": number,
                "reasoning": _OBEYED + order if order else "By the words it shares.",
                "relevant": bool(order) or bool(_words(claim) & _words(question)),
            }
            for number, claim in _listed_claims(asked).items()
        ]
    }


def _by_schema(asked: Asked, order: str, rule: Rule) -> Json:
    """For a prompt of no form: the first of a menu if it is met, or ordered; else the second."""
    if asked.schema is None:
        return f"{_OBEYED}{order}" if order else "There is nothing to judge in this."
    listed = asked.schema.get("properties")
    properties = listed if isinstance(listed, dict) else {}
    met = bool(order) or _finding(asked, rule).is_met
    reason = _OBEYED + order if order else "By the criterion's words."
    return {name: _value(part, reason, is_good=met) for name, part in properties.items()}


def _value(schema: Json, reason: str, *, is_good: bool) -> Json:
    part = schema if isinstance(schema, dict) else {}
    menu = part.get("enum")
    if isinstance(menu, list) and menu:
        return menu[0] if is_good else menu[min(1, len(menu) - 1)]
    values: dict[str, Json] = {
        "boolean": is_good,
        "number": float(is_good),
        "integer": int(is_good),
        "array": [],
        "object": {},
        "null": None,
    }
    kind = part.get("type")
    return values.get(kind, reason) if isinstance(kind, str) else reason


def _menu(schema: Mapping[str, Json], name: str) -> list[str]:
    properties = schema.get("properties")
    part = properties.get(name) if isinstance(properties, dict) else None
    menu = part.get("enum") if isinstance(part, dict) else None
    return [choice for choice in menu if isinstance(choice, str)] if isinstance(menu, list) else []


_FORMS: Mapping[str, Callable[[Asked, str, Rule], Json]] = {
    "binary": _binary,
    "chunks": _chunks,
    "claims": _claims,
    "compare": _compare,
    "criterion": _criterion,
    "levels": _levels,
    "relevance": _relevance,
    "score": _score,
    "verify": _verify,
}


def _form_of(schema: Mapping[str, Json]) -> Callable[[Asked, str, Rule], Json]:
    """The form that a schema stands for, where the prompt names none."""
    if {"MET", "UNMET"} <= set(_menu(schema, "verdict")):
        return _criterion
    return _binary if {"PASS", "FAIL"} <= set(_menu(schema, "score")) else _by_schema
