"""What is decided before any judge is asked: an answer without content gets nothing.

A single colon or "Solution:" wins up to nine in ten verdicts of some judges (Zhao et al. 2025,
"One Token to Fool LLM-as-a-Judge", arXiv:2507.08794), and more votes do not help.
"""

from __future__ import annotations

import re
import unicodedata

__all__ = ["emptiness"]

_OPENERS = frozenset(
    {
        *("answer", "the answer is", "final answer", "my answer", "here is my answer"),
        *("solution", "the solution is", "here is the solution", "explanation", "reasoning"),
        *("thought process", "thinking process", "let me think", "let us think", "lets think"),
        *("lets think step by step", "let us think step by step", "step by step", "step 1"),
        *("lets solve this problem step by step", "let us solve this problem step by step"),
        *("let me solve this step by step", "first", "to solve this problem", "sure", "okay"),
        *("of course", "certainly", "here you go", "i will answer", "response", "output"),
        *("lösung", "antwort", "respuesta", "solución", "réponse", "solution finale"),
        *("risposta", "soluzione", "resposta", "solução", "ответ", "решение"),
        *("解", "解答", "解析", "答案", "答", "回答", "思考过程", "让我们一步一步思考"),
        *("かいせつ", "解説", "こたえ", "答え", "回答", "풀이", "정답", "해설", "حل", "उत्तर"),
    }
)
_LONGEST = max(map(len, _OPENERS))
_WORD = re.compile(r"[^\W_]")
_SEPARATORS = re.compile(r"[\W_]+")
_CONTENT = frozenset({"Lu", "Ll", "Lt", "Lm", "Lo", "Nd", "Nl", "No", "So"})


def emptiness(answer: str, *, openers: bool = True) -> str:
    """Why an answer has no content to be judged, or "".

    Args:
        answer: The answer.
        openers: Whether the mere beginning of an answer, such as "Solution:", is none either.
    """
    if _WORD.search(answer):
        short = answer.strip()
        if openers and len(short) <= _LONGEST + 20:
            words = (
                _SEPARATORS.sub(" ", short.replace("'", "").replace("\u2019", "")).strip().lower()
            )
            if words in _OPENERS:
                return "the answer only announces an answer"
        return ""
    if any(_has_content(character) for character in set(answer)):
        return ""
    return "the answer has no words" if answer.strip() else "the answer is empty"


def _has_content(character: str) -> bool:
    category = unicodedata.category(character)
    return category in _CONTENT or (category in ("Sm", "Sc") and not character.isascii())
