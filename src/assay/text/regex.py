"""Compare an answer with a regular expression, in linear time."""

from __future__ import annotations

from assay.text.extract import Pick, answer_text
from assay.text.pattern import compile_pattern, encodable

__all__ = ["regex_match"]


def regex_match(
    answer: object,
    pattern: str,
    *,
    full: bool = False,
    ignore_case: bool = False,
    pick: Pick | None = None,
    extract: str | None = None,
) -> float:
    r"""Whether a pattern is found in the answer.

    Args:
        answer: What the model said.
        pattern: RE2 syntax (linear time, whatever the answer): as in `re`, without look-around and
            back-references; ``\d``, ``\w`` and ``\b`` mean ASCII, ``\p{L}`` is any letter.
        full: The pattern must match all of the answer, but for white space around it.
        ignore_case: Letters match in either case.
        pick: Which extraction counts where there are several (see `extract_answer`).
        extract: Where in the answer to look (see `extract_answer`).

    Returns:
        1.0 or 0.0.

    Raises:
        InputError: RE2 refuses the pattern, or ``pick`` or ``extract`` is invalid.
    """
    compiled = compile_pattern(pattern, ignore_case=ignore_case)
    text = answer_text(answer, extract, pick)
    if text is None:
        return 0.0
    text = encodable(text)
    match = compiled.fullmatch(text.strip()) if full else compiled.search(text)
    return float(match is not None)
