"""How alike an answer and a reference read: edit distance, shared n-grams, BLEU, ROUGE and kin.

These measure wording, not truth: one wrong number in a long sentence costs next to nothing. Where
an answer can be right or wrong, prefer a comparison that says so.
"""

from __future__ import annotations

import functools
import importlib
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Literal, Protocol, TypeAlias, cast

from assay.errors import InputError, MissingExtraError, nearest
from assay.text.extract import Pick, answer_text
from assay.text.normal_form import compose, reference_text

Metric: TypeAlias = Literal[
    "fuzzy",
    "levenshtein",
    "jaro_winkler",
    "token_set",
    "bleu",
    "gleu",
    "meteor",
    "rouge_1",
    "rouge_2",
    "rouge_3",
    "rouge_4",
    "rouge_5",
    "rouge_l",
]

MAX_CHARACTERS = 100_000
"""A longer answer scores 0.0 (comparing takes quadratic time); a longer reference is refused."""

MAX_FUZZY_CHARACTERS = 10_000
"""The same for ``fuzzy``, which slides the shorter text along the longer."""

_ROUGE_WORD = re.compile(r"[a-z0-9]+")


def similarity(
    answer: object,
    reference: object,
    *,
    metric: Metric = "fuzzy",
    threshold: float | None = None,
    pick: Pick | None = None,
    extract: str | None = None,
) -> float:
    """Score how alike the answer and the reference are, from 0.0 to 1.0.

    * ``fuzzy``: RapidFuzz ``WRatio`` after its default processing (case and punctuation do not
      count). Generous: unrelated texts of very different length reach about 0.6. With a threshold
      a part of the reference is no match for it.
    * ``levenshtein``: 1 less the edit distance as a share of the longer text; case counts.
    * ``jaro_winkler``: for names and other short texts; case counts.
    * ``token_set``: RapidFuzz ``token_set_ratio``: words regardless of order and repetition. Any
      word of the reference reaches 1.0, so it takes no threshold.
    * ``bleu``: sacreBLEU's sentence BLEU (13a tokens, exponential smoothing, effective order).
    * ``gleu``: NLTK's sentence GLEU (1- to 4-grams) on words and runs of punctuation, lower case.
    * ``meteor``: NLTK's METEOR by exact words and Porter stems. Its third stage, synonyms, needs
      the WordNet data, which are not bundled; it is left out, so that scores are the same
      everywhere.
    * ``rouge_1`` to ``rouge_5``: F-measure of shared n-grams; ``rouge_l``: of the longest common
      subsequence. As in ``rouge-score`` without stemming: tokens are runs of a-z and 0-9.

    Where one of the two is blank the score is 0.0, or 1.0 if both are.

    Args:
        answer: What the model said; longer than `MAX_CHARACTERS`, it scores 0.0.
        reference: The text to be like.
        metric: Which measure; ``bleu``, ``gleu`` and ``meteor`` need the extra ``similarity``.
        threshold: If given, the score is 1.0 where the similarity reaches it, else 0.0.
        pick: Which extraction counts where there are several (see `extract_answer`).
        extract: Where in the answer to look (see `extract_answer`).

    Raises:
        InputError: The metric is unknown, the threshold outside [0, 1] or given with
            ``token_set``, or the reference None or too long.
        MissingExtraError: The metric needs packages that are not installed.
    """
    from assay.text.numbers import check_finite

    measure = _MEASURES.get(metric)
    if measure is None:
        raise InputError(f"unknown metric {metric!r}", hint=nearest(str(metric), list(_MEASURES)))
    if threshold is not None:
        check_finite("threshold", threshold, most=1.0)
        if metric == "token_set":
            raise InputError(
                "token_set takes no threshold: one word of the reference is all it asks for",
                hint="rouge_1 also ignores the order of words, and counts those that are missing",
            )
    longest = MAX_FUZZY_CHARACTERS if metric == "fuzzy" else MAX_CHARACTERS
    wanted = compose(reference_text("reference", reference))
    if len(wanted) > longest:
        raise InputError(f"the reference is longer than the {longest:,} characters of {metric}")
    text = answer_text(answer, extract, pick)
    if text is None or len(text) > longest:
        return 0.0
    text = compose(text)
    if not text.strip() or not wanted.strip():
        score = float(text.strip() == wanted.strip())
    elif metric == "fuzzy" and threshold is not None and len(text) < len(wanted):
        score = _whole(text, wanted)
    else:
        score = min(1.0, max(0.0, measure(text, wanted)))
    return score if threshold is None else float(score >= threshold)


# --- RapidFuzz -----------------------------------------------------------------------------------


def _fuzzy(text: str, reference: str) -> float:
    from rapidfuzz import fuzz, utils

    return fuzz.WRatio(text, reference, processor=utils.default_process) / 100


def _whole(text: str, reference: str) -> float:
    """The same for an answer that is shorter: what it leaves out of the reference counts."""
    from rapidfuzz import fuzz, utils

    one, other = utils.default_process(text), utils.default_process(reference)
    return max(fuzz.ratio(one, other), 0.95 * fuzz.token_sort_ratio(one, other)) / 100


def _token_set(text: str, reference: str) -> float:
    from rapidfuzz import fuzz, utils

    return fuzz.token_set_ratio(text, reference, processor=utils.default_process) / 100


def _levenshtein(text: str, reference: str) -> float:
    from rapidfuzz.distance import Levenshtein

    return Levenshtein.normalized_similarity(text, reference)


def _jaro_winkler(text: str, reference: str) -> float:
    from rapidfuzz.distance import JaroWinkler

    return JaroWinkler.similarity(text, reference)


# --- ROUGE ---------------------------------------------------------------------------------------


def _rouge_words(text: str) -> list[str]:
    return _ROUGE_WORD.findall(text.lower())


def _rouge_l(text: str, reference: str) -> float:
    from rapidfuzz.distance import LCSseq

    spoken, wanted = _rouge_words(text), _rouge_words(reference)
    return _f_measure(LCSseq.similarity(spoken, wanted), len(spoken), len(wanted))


def _rouge_n(text: str, reference: str, *, n: int) -> float:
    spoken, wanted = _n_grams(_rouge_words(text), n), _n_grams(_rouge_words(reference), n)
    return _f_measure((spoken & wanted).total(), spoken.total(), wanted.total())


def _n_grams(tokens: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))


def _f_measure(shared: int, spoken: int, wanted: int) -> float:
    return 2 * shared / (spoken + wanted) if shared else 0.0


# --- NLTK and sacreBLEU --------------------------------------------------------------------------


class _Bleu(Protocol):
    def sentence_score(self, hypothesis: str, references: list[str]) -> _BleuScore: ...


class _BleuScore(Protocol):
    score: float


class _NoSynonyms:
    """Stands in for WordNet, whose data are not bundled: no word has a synonym."""

    def synsets(self, word: str) -> list[object]:
        del word
        return []


def _function(module: str, name: str, metric: str) -> Callable[..., object]:
    """Import a function of an optional package, none of which describes its types."""
    try:
        loaded = importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(f"similarity by {metric}", extra="similarity") from error
    return cast("Callable[..., object]", getattr(loaded, name))


@functools.cache
def _bleu_scorer() -> _Bleu:
    return cast("_Bleu", _function("sacrebleu.metrics.bleu", "BLEU", "bleu")(effective_order=True))


def _bleu(text: str, reference: str) -> float:
    return _bleu_scorer().sentence_score(text, [reference]).score / 100


def _tokens(text: str, metric: str) -> list[str]:
    tokenize = _function("nltk.tokenize", "wordpunct_tokenize", metric)
    return cast("list[str]", tokenize(text.lower()))


def _gleu(text: str, reference: str) -> float:
    """NLTK's number, in a tenth of its time."""
    spoken, wanted = _tokens(text, "gleu"), _tokens(reference, "gleu")
    counts = [(_n_grams(spoken, n), _n_grams(wanted, n)) for n in range(1, 5)]
    shared = sum((mine & theirs).total() for mine, theirs in counts)
    longer = max(sum(mine.total() for mine, _ in counts), sum(their.total() for _, their in counts))
    return shared / longer if longer else 0.0


def _meteor(text: str, reference: str) -> float:
    score = _function("nltk.translate.meteor_score", "single_meteor_score", "meteor")
    wanted, spoken = _tokens(reference, "meteor"), _tokens(text, "meteor")
    return cast("float", score(wanted, spoken, wordnet=_NoSynonyms()))


_MEASURES: dict[str, Callable[[str, str], float]] = {
    "fuzzy": _fuzzy,
    "levenshtein": _levenshtein,
    "jaro_winkler": _jaro_winkler,
    "token_set": _token_set,
    "bleu": _bleu,
    "gleu": _gleu,
    "meteor": _meteor,
    **{f"rouge_{n}": functools.partial(_rouge_n, n=n) for n in range(1, 6)},
    "rouge_l": _rouge_l,
}
