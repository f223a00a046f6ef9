from assay import StringThread

PLEASANT = ("sorry", "thank", "please", "glad")


async def grade(thread: StringThread) -> float:
    """A pleasant word, and no shouting."""
    answer = thread.completion() or ""
    words = [word.strip(".,!").lower() for word in answer.split()]
    pleasant = any(word in PLEASANT for word in words)
    shouting = answer.isupper() or answer.count("!") > 2
    print(f"{len(words)} words, pleasant: {pleasant}")  # noqa: T201 - shown beside its score
    return 0.0 if shouting else 0.5 + 0.5 * pleasant
