"""`Definition`: what every kind of stored grader has in common."""

from __future__ import annotations

import hashlib
import json
from typing import ClassVar, cast

from assay.graders.spec import GraderSpec
from assay.scoring.json_safe import Json
from assay.types import codec

__all__ = ["Definition"]


class Definition:
    """A grader as it is stored: the base of the classes of this module.

    Attributes:
        kind: What a file and the web call it.
    """

    __slots__ = ()
    kind: ClassVar[str]

    def to_dict(self) -> dict[str, Json]:
        """The definition as plain JSON; what has its default is left out."""
        return cast("dict[str, Json]", codec.to_json(self))

    def specs(self) -> tuple[GraderSpec, ...]:
        """The declared graders that do the grading; none where this version has none."""
        return ()

    def digest(self) -> str:
        """What exactly gives its scores: the definition, and the code of assay that grades by it.

        Returns:
            64 hexadecimal digits. A custom grader's own code is not part of it: it is not stored.
        """
        from assay.graders.digest import framed, grader_digest

        text = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"))
        code = [grader_digest(spec).encode() for spec in self.specs()]
        whole = hashlib.sha256(b"assay definition 1\0")
        whole.update(framed(self.kind.encode(), text.encode(), *code))
        return whole.hexdigest()
