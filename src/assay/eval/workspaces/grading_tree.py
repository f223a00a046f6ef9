"""The grading tree: the pristine source with those of the agent's changes that the case permits.

Commands and tests run in it, never in what the agent left. Built from two manifests, that of the
source and that of the agent's tree, it holds nothing that was not decided on path by path.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from posixpath import normpath

from assay.frozen import frozen
from assay.scoring.json_safe import Json
from assay.store.restore import restore_entries
from assay.store.snapshots import Dropped
from assay.store.sources import source_tree
from assay.tasks.makefiles import make_targets
from assay.tasks.permitted import Rules

_MOST_LINES = 200
_MAKEFILES = frozenset({"makefile", "gnumakefile"})
_LARGEST_MAKEFILE = 1 << 20


@frozen
class GradingPlan:
    """What is graded of a submission.

    Attributes:
        entries: The manifest of the grading tree.
        changes: Paths whose content is graded as the agent left it: added, changed or removed.
        dropped: What the agent added and the grading tree does not have, and why.
        restored: What the agent changed and is graded as it was in the source, and why.
        touched: How many paths the agent added, changed or removed in all.
        flags: Signs of tampering.
    """

    entries: Mapping[str, Json]
    changes: tuple[str, ...]
    dropped: tuple[Dropped, ...]
    restored: tuple[Dropped, ...]
    touched: int
    flags: tuple[str, ...]

    def notes(self, left_out: tuple[Dropped, ...]) -> dict[str, Json]:
        """What is kept with the run, at most 200 lines of each sort."""
        return {
            "changed": self.touched,
            "dropped": _lines((*self.dropped, *left_out)),
            "restored": _lines(self.restored),
        }


def plan(source: Mapping[str, Json], left: Mapping[str, Json], rules: Rules) -> GradingPlan:
    """Decide, path by path, what is graded."""
    entries: dict[str, Json] = {}
    touched: list[str] = []
    dropped: list[Dropped] = []
    restored: list[Dropped] = []
    signs: list[str] = []
    for path in sorted({*source, *left}):
        theirs, ours = left.get(path), source.get(path)
        if theirs == ours:
            entries[path] = ours
            continue
        # A link may lead to a package, and is then asked about as one.
        asked = f"{path}/__init__.py" if ours is None and _is_link(theirs) else path
        verdict, why = rules.decide(asked)
        if verdict == "taken":
            asked = path
            verdict, why = rules.decide(path)
        if _is_directory(theirs) and ours is None and verdict != "taken":
            continue  # its files are reported one by one
        if not (_is_directory(theirs) or _is_directory(ours)):
            touched.append(path)
        if verdict == "taken":
            if theirs is not None:
                entries[path] = theirs
        elif ours is not None:
            entries[path] = ours
            restored.append(Dropped(path, why))
        else:
            dropped.append(Dropped(path, why))
            if sign := rules.sign(asked):
                signs.append(f"{sign}: {path}")
    _make_room(entries, source, dropped)
    _add_directories(entries)
    # A test whose change was not taken is the author's still, and so is one with another mode.
    changes = [p for p in touched if _content(entries.get(p)) != _content(source.get(p))]
    return GradingPlan(
        entries=entries,
        changes=tuple(changes),
        dropped=tuple(dropped),
        restored=tuple(restored),
        touched=len(touched),
        flags=tuple(signs[:10]),
    )


def asked_for(home: str, source: str, entries: Mapping[str, Json]) -> list[str]:
    """Targets of the source's makefiles that it has no file for, and what they include. Blocks.

    Raises:
        StoreError: If something that was kept is missing or damaged.
    """
    makefiles = [path for path in entries if path.rpartition("/")[2].casefold() in _MAKEFILES]
    tree = source_tree(home, source) if makefiles else ""
    found: set[str] = set()
    for path in makefiles:
        found |= _asked_for_by(tree, path, entries)
    return sorted(path for path in found if not path.startswith(("/", "../")))


def build(home: str, chosen: GradingPlan, source: str, target: str) -> tuple[Dropped, ...]:
    """Write a grading tree, sharing files with the copy of a source, unless it is "". Blocks.

    Returns:
        Links that were not made, because they lead out of the tree.

    Raises:
        StoreError: If something that was kept is missing or damaged.
    """
    return restore_entries(home, chosen.entries, target, source=source)


def _asked_for_by(tree: str, makefile: str, entries: Mapping[str, Json]) -> set[str]:
    directory = makefile.rpartition("/")[0] or "."
    included: set[str] = set()

    def read(name: str) -> str:
        path = normpath(f"{directory}/{name}")
        included.add(path)
        return _text(tree, path) if path in entries else ""

    targets = make_targets(_text(tree, makefile), read)
    return {normpath(f"{directory}/{target}") for target in targets}.difference(entries) | included


def _text(tree: str, path: str) -> str:
    """The text of a makefile of the source; nothing if it is too large for one."""
    makefile = Path(tree, path)
    if not makefile.is_file() or makefile.stat().st_size > _LARGEST_MAKEFILE:
        return ""
    return makefile.read_text("utf-8", "replace")


def _make_room(
    entries: dict[str, Json], source: Mapping[str, Json], dropped: list[Dropped]
) -> None:
    """Let nothing of the submission stand where a path of the source needs a directory."""
    for path in list(entries):
        for above in _above(path) if path in entries else ():
            if above in entries and not _is_directory(entries[above]):
                if entries.get(path) == source.get(path):
                    del entries[above]
                    dropped.append(Dropped(above, "stands in the way of what is protected"))
                else:
                    del entries[path]
                    break


def _add_directories(entries: dict[str, Json]) -> None:
    for path in list(entries):
        for above in _above(path):
            entries.setdefault(above, {"type": "directory"})


def _above(path: str) -> list[str]:
    parts = path.split("/")[:-1]
    return ["/".join(parts[: number + 1]) for number in range(len(parts))]


def _is_directory(entry: Json) -> bool:
    return isinstance(entry, dict) and entry.get("type") == "directory"


def _is_link(entry: Json) -> bool:
    return isinstance(entry, dict) and entry.get("type") == "link"


def _content(entry: Json) -> Json:
    """A manifest's entry without its mode."""
    return {**entry, "mode": None} if isinstance(entry, dict) else entry


def _lines(found: tuple[Dropped, ...]) -> list[Json]:
    lines: list[Json] = [f"{_printable(item.path)}: {item.why}" for item in found[:_MOST_LINES]]
    if len(found) > _MOST_LINES:
        lines.append(f"... and {len(found) - _MOST_LINES} more")
    return lines


def _printable(path: str) -> str:
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
