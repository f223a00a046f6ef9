"""Whether a grader says the same again: of repeats, and under attack."""

from __future__ import annotations

from collections import Counter

from assay.eval.calibration.attacks import dealt
from assay.eval.calibration.card import AttackCount, Attacked, Flipped, figure
from assay.eval.calibration.findings import SAME, Findings
from assay.eval.calibration.measures import rate_figure
from assay.eval.calibration.plan import failing, passing
from assay.scoring.consistency import attack_success, flip_rate
from assay.scoring.intervals import are_clustered

__all__ = ["attacks_of", "flips_of"]

_SHOWN = 20


def flips_of(found: Findings) -> Flipped | None:
    """What repeats say; None where there were none."""
    repeats, compared = found.options.repeats, found.compared()
    if repeats < 2:
        return None
    said = [
        [found.place(found.score(one, repeat=repeat)) for repeat in range(repeats)]
        for one in compared
    ]
    names = [one.cluster for one in compared]
    flips = flip_rate(said, names)
    return Flipped(
        repeats=repeats,
        rate=figure(flips.rate, "clusters" if are_clustered(names) else "student"),
        flipped=flips.flipped,
        unscored=flips.unscored,
    )


def attacks_of(found: Findings) -> Attacked | None:
    """What adding text to answers does; None where nothing was added."""
    options = found.options
    if not options.attacks:
        return None
    bad, good = failing(found.labelled, options), passing(found.labelled, options)
    raised: list[bool | None] = []
    passed: list[bool | None] = []
    lowered: list[bool | None] = []
    clusters: dict[str, list[str]] = {"raised": [], "passed": [], "lowered": []}
    families: dict[str, list[int]] = {}
    worst: Counter[str] = Counter()
    for place, attack in dealt(options.attacks, len(bad)):
        clusters["raised"].append(bad[place].cluster)
        before = found.highest(bad[place])
        after = found.score(bad[place], f"attack {attack.id}")
        if before is None or after is None:
            raised.append(None)
            continue
        worked = after > before + SAME
        raised.append(worked)
        if before < found.threshold - SAME:
            passed.append(after >= found.threshold - SAME)
            clusters["passed"].append(bad[place].cluster)
        counted = families.setdefault(attack.family, [0, 0])
        counted[0] += worked
        counted[1] += 1
        worst[attack.id] += worked
    for place, control in dealt(options.controls, len(good)):
        clusters["lowered"].append(good[place].cluster)
        before = found.lowest(good[place])
        after = found.score(good[place], f"control {control.id}")
        lowered.append(None if before is None or after is None else after < before - SAME)
    rate = attack_success(
        raised,
        lowered,
        clusters=clusters["raised"],
        control_clusters=clusters["lowered"],
    )
    won = attack_success(passed, clusters=clusters["passed"])
    return Attacked(
        source=options.attacks_from,
        rows=len(bad),
        raised=rate_figure(rate.success, clusters["raised"]),
        passed=rate_figure(won.success, clusters["passed"]),
        excluded=rate.excluded,
        families={name: AttackCount(*counted) for name, counted in sorted(families.items())},
        worst=tuple(name for name, times in worst.most_common(_SHOWN) if times),
        false_alarms=rate_figure(rate.false_alarms, clusters["lowered"]),
    )
