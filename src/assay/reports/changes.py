"""What grading again changed, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from assay.reports.explain import name_of, nodes
from assay.reports.figures import score
from assay.scoring.json_safe import Json
from assay.scoring.results import SubScore
from assay.store.records import CellRecord
from assay.store.runs import Store

__all__ = ["Change", "changes_of"]

_SAME = 1e-9


@dataclass(frozen=True, slots=True)
class Change:
    """A cell's newest result beside the one before.

    Attributes:
        before: The earlier result.
        after: The newest one.
        reasons: What is different, one line each; empty where both came out the same.
    """

    before: CellRecord
    after: CellRecord
    reasons: tuple[str, ...]

    @property
    def differs(self) -> bool:
        """Whether the reward, the status or the verdict is another one."""
        old, new = self.before, self.after
        return (old.status, old.passed) != (new.status, new.passed) or _apart(
            old.reward, new.reward
        )

    def to_dict(self) -> dict[str, Json]:
        """As plain JSON."""
        new, old = self.after, self.before
        return {
            "case": new.case,
            "harness": new.harness,
            "model": new.model,
            "trial": new.trial,
            "before": {"status": old.status, "reward": old.reward, "digest": old.digest},
            "after": {"status": new.status, "reward": new.reward, "digest": new.digest},
            "reasons": list(self.reasons),
        }


def changes_of(store: Store, run_id: str) -> list[Change]:
    """Every cell that was graded more than once, with what that changed."""
    found: list[Change] = []
    for key in store.regraded(run_id):
        before, after = store.history(run_id, key)[-2:]
        found.append(Change(before, after, tuple(_reasons(before, after))))
    return found


def _reasons(before: CellRecord, after: CellRecord) -> list[str]:
    said: list[str] = []
    if before.status == "error" and after.status != "error":
        said.append(f"it could not be graded before: {before.error}")
    old, new = _by_name(nodes(before)), _by_name(nodes(after))
    for name, node in new.items():
        earlier = old.get(name)
        if earlier is None:
            said.append(f"{name_of(node)} is new: {_value(node)}")
        elif _apart(earlier.value, node.value) or earlier.status != node.status:
            said.append(
                f"{name_of(node)} {_value(earlier)} → {_value(node)}: {_why(earlier, node)}"
            )
        elif earlier.weight != node.weight or earlier.gate != node.gate:
            said.append(f"{name_of(node)} counts for {node.weight:g} instead of {earlier.weight:g}")
    said += [f"{name_of(node)} is gone" for name, node in old.items() if name not in new]
    if not said and before.digest != after.digest:
        said.append("its case or graders changed, and no score did")
    return said


def _why(before: SubScore, after: SubScore) -> str:
    old, new = _digest(before.metadata), _digest(after.metadata)
    if old and old == new:
        return "the same grader gave another score"
    return f"its grader changed ({old or 'unknown'} → {new or 'unknown'})"


def _digest(metadata: Mapping[str, Json] | None) -> str:
    found = (metadata or {}).get("_digest")
    return found if isinstance(found, str) else ""


def _by_name(parts: Sequence[SubScore]) -> dict[str, SubScore]:
    return {node.name: node for node in parts}


def _value(node: SubScore) -> str:
    return score(node.value) if node.value is not None else node.status


def _apart(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is not other
    return abs(one - other) > _SAME
