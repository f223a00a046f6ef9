"""Copies that a test has of what the host has, and the host of what a test lent: they follow.

Where the reference has a value, the test gets a copy of the object that a submission gives. Passed
on, it stands for its object, which is told what the test did to it; and where a test sees who has
which container, both sides are told what became of those that they share.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from assay.graders.testing.inside.boundary import aliasing, contract, mirrors
from assay.graders.testing.inside.boundary.judge_state import Ref, state
from assay.graders.testing.inside.boundary.talk import LOOKS, Talk
from assay.graders.testing.inside.boundary.wire import MUTABLE, WireError, differ, refill

_TAGS = {list: "l", tuple: "t"}


class _Copy:
    """What a test has of an object of the submission's, where the reference has a value.

    ``bare`` is the copy, and ``theirs`` the object, as each was written last.
    """

    def __init__(self, value: Any, of: Ref, bare: Any, theirs: Any) -> None:
        self.value, self.of, self.bare, self.theirs = value, of, bare, theirs


class CopyingTalk(Talk):
    """The talk with the host, as far as it keeps copies and what was lent like their originals."""

    def __init__(self) -> None:
        self._copies: dict[int, _Copy] = {}
        self.lent: dict[int, Any] = {}
        super().__init__()

    def read(self, node: Any, trails: list[str]) -> Any:
        """Read what a test came to."""
        raise NotImplementedError

    def request(self, op: str, *parts: Any, trails: list[str] | None = None) -> Any:
        """The same, where both sides have what the test lent: each is told what the other did."""
        if self.lent and op != "renew" and not state.learns:
            for value in aliasing.held.changed():
                self.request("renew", id(value), self.given(value, ["?"])[-1])
        trails = trails or ["?"]
        found, *lent = self.asked(op, parts, trails)
        if op not in LOOKS:
            aliasing.scramble()
        for number, node in lent[0] if lent else ():
            self.change(self.lent[number], node, trails)
        return found

    # -- copies of objects ---------------------------------------------------------------------

    def copied(self, ref: Ref, found: Any, node: Any) -> Any:
        """Remember of what something is a copy: if the test passes it on, the object is meant."""
        # Of an empty tuple, a letter or a small number there is one for all.
        least = 2 if isinstance(found, (str, bytes)) else 1
        is_one = isinstance(found, (str, bytes, tuple, frozenset)) and len(found) < least
        if not (is_one or type(found) is int or type(found) in mirrors.LINKED.values()):
            self._copies[id(found)] = _Copy(found, ref, self._bare(found), node)
        return found

    def _bare(self, value: Any) -> Any:
        """Write a value as what it is, and not as what it is a copy of."""
        with self.doing.but(gives=False):
            return super().written(value, 0)

    def written(self, value: Any, depth: int) -> Any:
        copies = self._copies if self.doing.gives else {}
        if id(value) in copies:
            return self._written_copy(copies[id(value)], super().written(value, depth))
        if type(value) in (list, tuple) and not copies.keys().isdisjoint(map(id, value)):
            return [_TAGS[type(value)], [self.encode(one, depth + 1) for one in value]]
        return super().written(value, depth)

    def _written_copy(self, copy: _Copy, node: Any) -> Any:
        """Write a copy as the object that it is of, to which is done what the test did to it."""
        bare = self._bare(copy.value)
        if differ(bare, copy.bare):
            if type(copy.value) not in MUTABLE:
                return node
            self.request("refill", copy.of.node(), node)
            copy.bare, copy.theirs = bare, self.request("base", copy.of.node())
        return ["V", copy.of.node(), bare]

    def follow(self, given: Sequence[Any], trails: list[str]) -> None:
        """Do to copies what a call that got their objects has done to those."""
        for value in given if self._copies else ():
            copy = self._copies.get(id(value))
            if copy is None or type(value) not in MUTABLE:
                continue
            node = self.request("base", copy.of.node())
            if differ(node, copy.theirs):
                self.change(value, node, trails)
                copy.theirs, copy.bare = node, self._bare(value)

    # -- containers that an attribute holds ----------------------------------------------------

    def following(self, ref: Ref, found: Any, trails: list[str]) -> Any:
        """A container of the host's, as a copy that follows it; anything else as it is."""
        if type(found) not in mirrors.LINKED:
            return found
        made = mirrors.LINKED[type(found)](found)
        made._assay, made._assay_seen = ref, self.changes
        ref.trails = trails
        return made

    # -- containers that both sides have -------------------------------------------------------

    def shared(self, value: Any, node: list[Any]) -> list[Any]:
        if not self.doing.gives or self.doing.expresses or id(value) in self._copies:
            return node
        aliasing.note(value)
        if not aliasing.shares():
            return node
        if id(value) not in self.lent:
            self.lent[id(value)] = value
            aliasing.held.note(value)
        return ["K", id(value), node]

    def arrived(self, found: Any) -> Any:
        aliasing.note(found)
        return found

    def change(self, value: Any, node: Any, trails: list[str], what: str = "changes") -> None:
        """Make a change to what the test has lent, if the reference makes one, too."""
        after = self.read(node, [f"{one}#" for one in trails])
        if type(after) is not type(value):
            raise WireError("an argument became something else")
        # Which argument it is, is not known of one that both sides have.
        if contract.may("changes", trails) and contract.may(what, trails):
            refill(value, after)
            aliasing.held.note(value)
        else:
            aliasing.leave(trails, what)
