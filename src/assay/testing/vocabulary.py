"""Lists of English words that the heuristic judge goes by."""

from __future__ import annotations

__all__ = [
    "AUXILIARY",
    "COPULA",
    "DENIALS",
    "GRADING",
    "GUESSES",
    "NO_DENIALS",
    "NUMBERS",
    "POINTING",
    "REFUTING",
    "STOP",
    "SUPPOSING",
    "SYNONYMS",
    "TURNING",
]


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


STOP = _set(
    """
    a an the this that these those it its he she they them his her their there here who whom whose
    which what when where why how and or but nor so yet if then than as of in on at by for with
    from to into onto over under about between through during after before above below is are was
    were be been being am do does did done has have had having will would shall should can could
    may might must not no never none also too very just only both either neither each every any
    some such own same other another more most much many few i you we us our your my me mine one
    s t d ll re ve m don doesn didn isn aren wasn weren won wouldn shouldn couldn cannot ain
    hasn haven hadn etc eg ie out up down off again because while until yes indeed well
    """
)
"""Words that mean little by themselves."""

SYNONYMS = tuple(
    line.split()
    for line in """
    create invent launch make made build built publish publication release develop introduce
    create produce found establish author write wrote written
    begin begun began start commence
    buy bought purchase acquire
    big large huge great
    use utilize employ
    show demonstrate
    fast quick rapid
    car automobile
    movie film
    doctor physician
    choose chose chosen select pick
    """.strip().splitlines()
)
"""Words that are taken for each other; the first stands for them all."""

_NUMBERS = """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
    sixteen seventeen eighteen nineteen twenty
"""
NUMBERS = tuple(_NUMBERS.split())
"""The words of the numbers from 0."""

GRADING = _set(
    """
    response answer submission output text reply completion state stated stating say says saying
    said mention mentions include includes contain explain describe name named identify give given
    provide cite report note show present list refer correct correctly clear clearly explicit
    explicitly accurate accurately fact least criterion requirement user assistant model author
    reader claim argue assert conclude avoid omit refrain free absence absent word phrase term
    following pass passes passed met satisfied question asked ask result value true equal exactly
    address discuss point detail final
    """
)
"""Words with which criteria speak of answers."""

DENIALS = _set(
    """
    not no never neither nor without unlike cannot except excluding wrongly falsely incorrectly
    mistakenly hardly denies denied false wrong incorrect untrue myth misconception formerly ain't
    """
)
"""Words that take back what follows them."""

NO_DENIALS = _set("only just doubt question merely surprise")
"""Words after which a denial is none, as in "not only"."""

REFUTING = _set("wrong false incorrect untrue mistaken myth misconception error")
"""Words that say of something that it is not so."""

SUPPOSING = _set("if suppose supposing assuming imagine pretend whether contrary")
"""Words after which nothing is asserted."""

GUESSES = _set("maybe perhaps possibly might could either")
"""Words that make a guess of what follows."""

POINTING = _set("that this it they which those these")
"""Words that mean what was said before."""

TURNING = _set("but however although though yet whereas while")
"""Words that begin a clause with a sense of its own."""

AUXILIARY = _set(
    "is are was were be been does do did has have had can could will would should became"
)
"""Verbs that a "not" follows."""

COPULA = _set("is are was were be equals in to by called named")
"""Words that stand before the value of something."""
