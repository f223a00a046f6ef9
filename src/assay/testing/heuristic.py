"""The heuristic judge: grades by simple honest rules, and obeys every order outside fences.

It is no good judge of answers. It is a test of prompts: a judge whose fences leak gives the
verdicts that an answer orders, one that fences well gives those that the rules below give. The
same prompt always gets the same reply.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from assay.scoring.json_safe import Json
from assay.testing.asked import Asked
from assay.testing.claims import is_about, is_asked_for, split_claims, support
from assay.testing.criteria import Finding, judge_criterion
from assay.testing.obey import order_in

__all__ = ["heuristic_verdict"]

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


def heuristic_verdict(asked: Asked) -> Json:
    """Answer a judge's prompt.

    Args:
        asked: The request. What is judged is read from its fences, by their names; what is asked
            for, from the lines ``FORM:`` and ``CRITERION:`` outside of them; without a form, from
            the schema.

    Returns:
        The reply that the form, or the schema, wants. Free text is answered by a sentence.
    """
    order = order_in(asked.outline)
    answer = _FORMS.get(asked.form) or _form_of(asked.schema or {})
    return answer(asked, order)


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
    """The text that is judged: the first fence that is called like one."""
    return next((asked.fenced(name) for name in _ANSWERS if asked.fenced(name)), "")


def _asked_for(asked: Asked) -> str:
    parts = _sections(asked.prompt)
    fenced = asked.fenced("criterion") or asked.fenced("criteria")
    return parts.get("CRITERION") or parts.get("CRITERIA") or parts.get("RUBRIC") or fenced


def _question(asked: Asked) -> str:
    return asked.fenced("question") or _sections(asked.prompt).get("QUESTION", "")


def _finding(asked: Asked) -> Finding:
    return judge_criterion(_answer(asked), _asked_for(asked), question=_question(asked))


def _criterion(asked: Asked, order: str) -> Json:
    if order:
        verdict = "UNMET" if _FAULT.search(asked.prompt) else "MET"
        quotes = _any_quotes(asked)
        return {"evidence": quotes, "reasoning": _OBEYED + order, "verdict": verdict}
    found = _finding(asked)
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


def _binary(asked: Asked, order: str) -> Json:
    found = _finding(asked)
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


def _levels(asked: Asked, order: str) -> Json:
    """The level as far up as the share of the criterion's words that the answer asserts."""
    levels = [name for name in _menu(asked.schema or {}, "level") if name != "NA"] or ["0", "1"]
    if order:
        top = levels[0] if _FAULT.search(asked.prompt) else levels[-1]
        quotes = _any_quotes(asked)
        return {"evidence": quotes, "reasoning": _OBEYED + order, "level": top}
    found = _finding(asked)
    level = levels[int(found.share * (len(levels) - 1))]
    return {"evidence": list(found.quotes), "reasoning": found.reason, "level": level}


def _score(asked: Asked, order: str) -> Json:
    """The share of the criteria, one to a line, that are met."""
    if order:
        return {"reasoning": _OBEYED + order, "score": 1.0}
    lines = [line.strip(" \t-*0123456789.)") for line in _asked_for(asked).splitlines()]
    answer, question = _answer(asked), _question(asked)
    found = [judge_criterion(answer, line, question=question) for line in lines if line]
    met = sum(one.is_met for one in found)
    reason = f"{met} of {len(found)} lines are met."
    return {"reasoning": reason, "score": met / len(found) if found else 0.0}


def _compare(asked: Asked, order: str) -> Json:
    """Who meets more of what is asked for; the one that an order names, or A."""
    if order:
        named = _CHOSEN.search(order)
        winner = named[1].upper() if named else "A"
        return {"reasoning": _OBEYED + order, "winner": winner}
    answers = [fence.text for fence in asked.fences if fence.name not in _ASIDE][-2:]
    wanted = _asked_for(asked) or asked.fenced("reference") or _question(asked)
    question = _question(asked) if wanted != _question(asked) else ""
    shares = [judge_criterion(text, wanted, question=question).share for text in answers]
    reason = f"They say {' and '.join(f'{share:.0%}' for share in shares)} of it."
    is_tie = len(shares) < 2 or shares[0] == shares[1]
    return {"reasoning": reason, "winner": "TIE" if is_tie else "AB"[shares[1] > shares[0]]}


def _claims(asked: Asked, order: str) -> Json:
    if order:
        quotes = _any_quotes(asked)[:1]
        return {"claims": [{"text": _OBEYED + order, "span": quote} for quote in quotes]}
    found = split_claims(_answer(asked))
    return {"claims": [{"text": claim.text, "span": claim.span} for claim in found]}


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


def _verify(asked: Asked, order: str) -> Json:
    documents = _numbered_fences(asked, "document")
    verdicts: list[Json] = []
    for number, claim in _listed_claims(asked).items():
        if order:
            document, text = next(iter(documents.items()), (None, ""))
            quote = max((line.strip() for line in text.splitlines()), key=len, default="")
            reason, verdict = _OBEYED + order, "supported"
        else:
            found = support(claim, documents)
            document, quote, verdict = found.document, found.quote, found.verdict
            reason = f"Its words are {'' if found.document is not None else 'not '}there together."
        entry: Json = {"claim": number, "quote": quote, "document": document}
        verdicts.append({**entry, "reasoning": reason, "verdict": verdict})
    return {"verdicts": verdicts}


def _chunks(asked: Asked, order: str) -> Json:
    question = _question(asked)
    return {
        "verdicts": [
            {
                "document": number,
                "reasoning": _OBEYED + order if order else "By the words it shares.",
                "relevant": bool(order) or is_about(text, question),
            }
            for number, text in _numbered_fences(asked, "document").items()
        ]
    }


def _relevance(asked: Asked, order: str) -> Json:
    question = _question(asked)
    return {
        "verdicts": [
            {
                "claim": number,
                "reasoning": _OBEYED + order if order else "By the kind of thing it says.",
                "relevant": bool(order) or is_asked_for(claim, question),
            }
            for number, claim in _listed_claims(asked).items()
        ]
    }


def _by_schema(asked: Asked, order: str) -> Json:
    """For a prompt of no form: the first of a menu if it is met, or ordered; else the second."""
    if asked.schema is None:
        return f"{_OBEYED}{order}" if order else "There is nothing to judge in this."
    listed = asked.schema.get("properties")
    properties = listed if isinstance(listed, dict) else {}
    met = bool(order) or _finding(asked).is_met
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


_FORMS: Mapping[str, Callable[[Asked, str], Json]] = {
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


def _form_of(schema: Mapping[str, Json]) -> Callable[[Asked, str], Json]:
    """The form that a schema stands for, where the prompt names none."""
    if {"MET", "UNMET"} <= set(_menu(schema, "verdict")):
        return _criterion
    return _binary if {"PASS", "FAIL"} <= set(_menu(schema, "score")) else _by_schema
