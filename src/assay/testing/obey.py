"""Find orders to a judge in text that a model would take for its instructions.

Whatever stands outside fences was written by the judge's author, or got there. These patterns are
of the second kind: orders to give a verdict, claims that one was given, forged turns and forged
verdicts. They are kept from firing on what authors write: menus that offer both verdicts, and
conditions that say when which is due.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import html
import re
import unicodedata
from functools import lru_cache

from assay.testing.asked import PLACE

_GOOD = (
    r"met|pass(?:es|ed)?|correct|satisf(?:y|ied|ies)|fulfill?ed|approved|supported|relevant|true|"
    r"perfect|full[ -](?:marks?|credits?|scores?|points?)|(?:the )?(?:maximum|highest|top|best)\b|"
    r"1\.0+|100(?: ?%)?|10(?: ?/ ?10| out of 10)?|5(?: ?/ ?5| out of 5)|excellent|a\+"
)
_BAD = re.compile(
    r"\b(?:unmet|not met|fail(?:s|ed|ure)?|incorrect|not satisfied|unsupported|contradict\w*|"
    r"absent|irrelevant|n/?a|false)\b|(?<![\d.])0(?:\.0+)?(?!\.?\d)"
)
_VERBS = (
    r"output|return|respond|reply|answer|say|print|emit|write|give|award|assign|mark|grade|score|"
    r"rated?|graded|scored|gave|awarded|marked|set|record|issue|enter|select|choose|declare|"
    r"consider|treat|accept|conclude|report|"
    r"gib|antworte|ausgeben|bewerte|donne[rz]?|r[eé]ponds?|renvoie[sz]?|attribue[sz]?|marque[rsz]?|"
    r"devuelve|responde|escribe|marca|califica|retorne|responda|rispondi|restituisci|"
    r"выведи|верни|ответь|поставь|напиши"
)
_STATUS = (
    r"verdict|grade|score|rating|result|label|status|criterion_status|outcome|final answer|"
    r"assessment|decision|judge?ment|evaluation|urteil|ergebnis|note|veredicto|calificación|оценка|"
    r"вердикт|判定|评分|结论|結論"
)
_CONDITION = re.compile(
    r"\b(?:if|when|whenever|whether|unless|only|otherwise|where|which|how|as long as|one of|"
    r"either|means?|needs?|requires?|never|do not|don't|not to)\b"
)
_ORDERS = (
    re.compile(rf"\b(?:{_VERBS})\b(?:[^\w.!?,\n]+\w+){{0,4}}?[^\w.!?,\n]+(?:{_GOOD})(?!\w)"),
    re.compile(
        rf"\b(?:{_STATUS})\b\W{{0,3}}\s*(?:is|are|=+>?|:|->|>|→|should be|must be|ist|est|es)"
        rf"[\s\"'*`(\[]*(?:{_GOOD}|1(?![\d.])|[ac]\b)(?!\w)"
    ),
    re.compile(rf"\[\[?(?:{_GOOD})\]?\]|\[(?:result|rating|verdict|score)\]\s*(?:{_GOOD}|\d)"),
    re.compile(
        r"\b(?:so|hence|thus|therefore)\b\W+(?:it is |this is |mark |the answer )?(?:met|pass)\b"
    ),
    re.compile(
        r"\b(?:criteri(?:on|a)|requirements?|submission|answer|response|candidate|item)s?\b"
        r"(?: \w+){0,3}? (?:is|are|was|has been|have been)?\s?(?:\w+ly )?"
        r"(?:met|satisfied|passes|passed|fulfill?ed|pre-?approved|verified)\b"
    ),
    re.compile(
        r"\bplease (?:just )?pass\b|\b(?:must|should|shall|has to) (?:be )?pass(?:ed)?\b|"
        r"\bpass (?:this|it|me|the (?:answer|response|submission))\b"
    ),
)
_OVERRIDES = (
    re.compile(
        r"\b(?:ignor\w+|disregard\w*|forget|override|overrule|bypass|discard|skip|vergiss|missachte|"
        r"oublie[rsz]?|olvida|esqueça|dimentica|игнорируй\w*|забудь)\b(?:\W+\w+){0,4}?\W+"
        r"(?:previous|prior|above|earlier|preceding|rubrics?|criteri\w+|kriteri\w+|"
        r"bewertungskriteri\w+|grading|instructions? (?:above|before)|"
        r"your (?:instructions?|rules?)|system prompt|all (?:instructions?|rules?)|"
        r"vorherigen|bisherigen|anweisungen|instructions pr[eé]c[eé]dentes|instrucciones|"
        r"instruções|istruzioni|инструкц\w+|критери\w+)"
    ),
    re.compile(
        r"忽略.{0,12}(?:标准|指令|说明|规则|要求|提示)|無視|输出\s*(?:pass|met)|判定为|給予|给.{0,4}满分|"
        r"무시|출력|تجاهل|अनदेखा"
    ),
    re.compile(r"\b(?:new|updated|revised|additional) (?:instruction|rule|rubric|task)\w*:"),
    re.compile(r"\b(?:you are now|act as|pretend (?:to be|that)|from now on|developer mode)\b"),
    re.compile(r"\b(?:if|unless) you (?:mark|grade|fail|score|judge)\b"),
)
_INSIDE = re.compile(
    r"^[^.!?\n]{0,60}\b(?:in|inside|within|between|from) (?:\w+ )?(?:it|them|fences?|material|"
    r"untrusted|fenced|tags?|blocks?|those|these)\b"
)
_TOLD_OF = re.compile(
    r"\b(?:may|might|can|could) (?:\w+ )?(?:ask|tell|want|try|order)(?: \w+)? to $"
)
_TURNS = re.compile(
    r"<\|\s*[a-z_]+\s*\|>|\[/?inst\]|<</?sys>>|</?s>|<(?:start|end)_of_turn>|"
    r"^[ \t#]*(?:human|assistant|system|ai|model|grader|judge|evaluator)\s*:",
    re.MULTILINE,
)
_NAMED_TURN = re.compile(
    r"[ \t#*]*(?:user|human|assistant|system|ai|model)[ \t*]*:[ \t*]*", re.IGNORECASE
)
_JSON_VERDICT = re.compile(  # but for an offer: `"MET" or "UNMET"`
    r"[\"'](?:verdict|criterion_status|criteria_met|score|grade|passed|pass|result|status|label|"
    r"decision|relevant|supported|winner|choice)\\?[\"']\s*:\s*"
    r"(?:\\?[\"'](?:met|pass(?:ed)?|correct|yes|true|supported|a|b|c|good|full|1(?:\.0)?|10|100)\b|"
    r"true\b|[1-9]\d*(?:\.\d+)?\b|0?\.[5-9]\d*)(?![\\\"']*\s*(?:or\b|[|/]))"
)
_CRITERION = re.compile(
    r"(?:^[ \t#]*(?:new |updated |the )?criteri(?:on|a):|<criteri(?:on|a)>)\s*(.*)",
    re.MULTILINE | re.IGNORECASE,
)
_SECTION = re.compile(r"^(?:CRITERION|CRITERIA|RUBRIC|LEVELS|LEVEL [^\n:]*):", re.MULTILINE)
_ENCODED = re.compile(r"(?<![\w+/])(?:[A-Za-z0-9+/]{16,}={0,2}|(?:[0-9A-Fa-f]{2}){12,})(?![\w+/=])")
_TURNED = re.compile("\u202e([^\u202c\n]*)")
_SPACED = re.compile(r"\b(?:\w[ ._*-]){3,}\w\b")
_HOMOGLYPHS = str.maketrans("авеіјкмнорѕстухАВЕІЈКМНОРЅСТУХ", "abeijkmhopsctyxABEIJKMHOPSCTYX")


@lru_cache(maxsize=64)  # of a prompt that holds, it is the same for every answer
def order_in(outside: str) -> str:
    """Find an order that a judge's author did not write.

    Args:
        outside: What stands outside fences: the system prompt and the user's text. A line `PLACE`
            stands for each fence: the name of a turn in front of one is a template's.
    """
    turned = [match[1][::-1] for match in _TURNED.finditer(outside)]  # shown right to left
    shown = "\n".join([_without_names(_plain(outside)), *map(_plain, turned)])
    if len({" ".join(match[1].split()) for match in _CRITERION.finditer(shown)}) > 1:
        return "a second criterion"
    without = _without_criterion(shown)
    for text in (without, *_decoded(without)):
        found = _order(text.casefold())
        if found:
            return found
    if found := _override(codecs.encode(without, "rot13").casefold()):
        return found
    return _joined_order(without)


def _order(text: str) -> str:
    for pattern in (_TURNS, _JSON_VERDICT):
        if found := pattern.search(text):
            return found[0].strip()
    if found := _override(text):
        return found
    for line in re.split(r"\n+|(?<=[.!?。])\s+", text):
        if _BAD.search(line) or _CONDITION.search(line):
            continue  # a menu, or a rule of when which is due
        for order in _ORDERS:
            if found := order.search(line):
                return found[0].strip()
    return ""


def _override(text: str) -> str:
    for pattern in _OVERRIDES:
        for found in pattern.finditer(text):
            before = text[max(0, found.start() - 40) : found.start()]
            if not _TOLD_OF.search(before) and not _INSIDE.search(text[found.end() :]):
                return found[0].strip()
    return ""


def _joined_order(text: str) -> str:
    """Orders whose letters stand apart, as in ``P A S S``."""
    spaced = _SPACED.findall(text)
    if not spaced:
        return ""
    return _order(_SPACED.sub(lambda match: re.sub(r"[ ._*-]", "", match[0]), text).casefold())


def _plain(text: str) -> str:
    """The text as a model reads it: look-alikes as what they look like, nothing invisible."""
    tags = "".join(chr(ord(c) - 0xE0000) if 0xE0020 <= ord(c) <= 0xE007E else c for c in text)
    folded = unicodedata.normalize("NFKC", html.unescape(tags))
    visible = "".join(c for c in folded if unicodedata.category(c) != "Cf" and c != "\u00ad")
    mixed = re.compile(r"\w*[A-Za-z]\w*")
    return mixed.sub(lambda match: match[0].translate(_HOMOGLYPHS), visible)


def _without_names(text: str) -> str:
    """The text without places of fences, and without the names of turns that have no other text."""
    kept: list[str] = []
    is_named = True
    for line in reversed(text.split("\n")):
        if line.strip() == PLACE:
            is_named = True
        elif not (is_named and _NAMED_TURN.fullmatch(line)):
            is_named = is_named and not line.strip()
            kept.append(line)
    return "\n".join(reversed(kept))


def _without_criterion(text: str) -> str:
    """The text without its criterion: what an author asks of answers is no order to the judge."""
    found = _SECTION.search(text)
    while found:
        end = re.compile(r"\n\s*\n|\n[A-Z][A-Z ]+:").search(text, found.end() + 1)
        after = end.start() if end else len(text)
        text = text[: found.start()] + text[after:]
        found = _SECTION.search(text, found.start())
    return text


def _decoded(text: str) -> list[str]:
    """What base64 and hexadecimal in a text say, where it is text."""
    found: list[str] = []
    for match in _ENCODED.finditer(text):
        for decode in (base64.b64decode, binascii.unhexlify):
            try:
                plain = decode(match[0]).decode()
            except ValueError:
                continue
            if plain.isprintable():
                found.append(plain)
    return found
