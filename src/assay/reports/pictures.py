"""Pictures of a cell or a row as the page shows them, and as words where a text holds one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from assay.errors import InputError
from assay.frozen import frozen
from assay.reports.plain import one_line
from assay.scoring.json_safe import Json

if TYPE_CHECKING:  # lists of what is stored load none of it
    from assay.types.picture import Picture
    from assay.types.thread import StringThread
    from assay.types.trace import Trace


@frozen(kw_only=True)
class ShownPicture:
    """A picture.

    Attributes:
        name: What judges and texts call it, such as ``picture 1``.
        of: Whose it is.
        digest: SHA-256 of its bytes, in hexadecimal.
        media_type: ``image/png``, ``image/jpeg`` or ``image/webp``.
        width: In pixels.
        height: Likewise.
        size: In bytes.
        url: A data URL that holds it; empty where there is no room for it.
    """

    name: str
    of: str
    digest: str
    media_type: str
    width: int
    height: int
    size: int
    url: str


@frozen(kw_only=True)
class CellPictures:
    """The pictures of a cell.

    Attributes:
        pictures: They, in their order.
    """

    pictures: tuple[ShownPicture, ...]


def shown_pictures(given: Sequence[tuple[str, Picture]]) -> tuple[ShownPicture, ...]:
    """Pictures, each with whose it is, as they are shown."""
    return tuple(
        ShownPicture(
            name=f"picture {number}",
            of=one_line(of, 100),
            digest=one.digest,
            media_type=one.media_type,
            width=one.width,
            height=one.height,
            size=len(one.data),
            url=one.url,
        )
        for number, (of, one) in enumerate(given, 1)
    )


def within(room: int, pictures: Sequence[ShownPicture]) -> tuple[tuple[ShownPicture, ...], int]:
    """Pictures, without the data of those for which there is no room; and the room that is left."""
    kept: list[ShownPicture] = []
    for one in pictures:
        fits = len(one.url) <= room
        room -= len(one.url) if fits else 0
        kept.append(one if fits else replace(one, url=""))
    return tuple(kept), room


def pictures_of(thread: StringThread | None, trace: Trace | None) -> list[tuple[str, Picture]]:
    """The pictures of a conversation and of what tools gave, each with whose it is."""
    found: list[tuple[str, Picture]] = []
    if thread is not None:
        found += [
            (f"{thread.turns[place].role}, turn {place + 1}", picture)
            for place, picture in thread.pictures
        ]
    if trace is None:
        return found
    from assay.types.trace import ToolStep

    for step in trace.steps:
        if isinstance(step, ToolStep) and step.result is not None:
            found += [(f"got by {step.call.name}", one) for one in _held(step.result.content)]
    return found


def in_turn(thread: StringThread, place: int) -> str:
    """What a turn says, with the names of its pictures below."""
    names = [
        f"[picture {number}: {one.media_type}, {one.width} x {one.height}, {one.digest[:12]}]"
        for number, (at, one) in enumerate(thread.pictures, 1)
        if at == place
    ]
    return "\n".join(filter(None, [thread.turns[place].content, *names]))


def described(value: Json) -> Json:
    """JSON in which every picture stands as what it is, and not as what it holds."""
    if isinstance(value, list):
        return [described(one) for one in value]
    if isinstance(value, dict):
        if (picture := _picture(value)) is not None:
            return {"type": str(value["type"]), **picture.told}
        return {name: described(one) for name, one in value.items()}
    if isinstance(value, str) and value[:11].lower() == "data:image/":
        return f"{value[:40]}... ({len(value):,} characters)" if len(value) > 200 else value
    return value


def _held(value: Json) -> Iterator[Picture]:
    if isinstance(value, list):
        for one in value:
            yield from _held(one)
    elif isinstance(value, dict):
        if (picture := _picture(value)) is not None:
            yield picture
        else:
            yield from _held(value.get("content"))


def _picture(part: Mapping[str, Json]) -> Picture | None:
    """The picture of a part of a message; None where it is none, or holds none."""
    from assay.types.picture import PICTURE_PARTS, Picture, url_of

    if part.get("type") not in PICTURE_PARTS:
        return None
    try:
        return Picture.of_url(url_of(dict(part)) or "")
    except InputError:
        return None
