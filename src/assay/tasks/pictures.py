"""Pictures of rows: files beside a dataset taken into its lines, and ``images`` put into turns.

A picture is a part of a message, and nothing else: what stands in a field ``images`` goes to where
the messages have a place for it (``{"type": "image"}``, as datasets for vision models have), or to
what the user says last.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TypeAlias, cast

from assay.errors import InputError
from assay.graders.tree import read_regular
from assay.scoring.json_safe import Json
from assay.tasks.json_rows import parse_line
from assay.types.picture import MOST_BYTES, MOST_PICTURES, PICTURE_PARTS, Picture, url_of

_Read: TypeAlias = "Callable[[str, str], str]"
"""From a field and what it says to the data URL of a picture."""
_Lines: TypeAlias = "Iterator[tuple[int, bytes | InputError]]"

IMAGES = "images"


def may_have_pictures(line: bytes) -> bool:
    """Whether the JSON of a row has the field or a part of a message, and not just the word."""
    return b'image"' in line or b'images"' in line or b'image_url"' in line


def with_files(lines: _Lines, file: str, field: str = IMAGES) -> _Lines:
    """Lines of a file of rows, in which pictures beside it are held as data URLs.

    Whatever reads them then, on this machine or another, needs no other file. `field` is what
    ``images`` is called there.
    """
    directory, name = Path(file).parent, f'{field}"'.encode()
    for number, line in lines:
        if isinstance(line, InputError) or not (name in line or may_have_pictures(line)):
            yield number, line
            continue
        try:
            yield number, _with_files(line, directory, field)
        except InputError as error:
            yield number, error


def _with_files(line: bytes, directory: Path, images: str) -> bytes:
    row = parse_line(line)
    taken: list[str] = []

    def read(field: str, url: str) -> str:
        if url[:5].lower() == "data:" or "://" in url[:12]:  # what it is worth is looked at later
            return url
        if len(taken) == MOST_PICTURES:
            raise InputError(f"{field}: there are more than {MOST_PICTURES} pictures")
        taken.append(field)
        return _of_file(directory, url, field)

    made = _each_picture(row, read, images)
    if not taken:
        return line
    return json.dumps(made, ensure_ascii=False).encode("utf-8", "surrogatepass")


def _of_file(directory: Path, path: str, field: str) -> str:
    parts = Path(path).parts
    if Path(path).is_absolute() or ".." in parts or "\0" in path or not parts:
        raise InputError(
            f"{field}: {path!r:.100} leads out of the dataset's directory",
            hint="put the picture beside the file of rows, or below that directory",
        )
    found = read_regular(directory, path, limit=MOST_BYTES)
    if isinstance(found, str):
        raise InputError(
            f"{field}: {path!r:.100} {found}",
            hint=f"a file of at most {MOST_BYTES:,} bytes beside the rows, and no link to one",
        )
    return _checked(partial(Picture, found), f"{field}: {path!r:.100}").url


def _checked(make: Callable[[], Picture], what: str) -> Picture:
    try:
        return make()
    except InputError as error:
        raise InputError(f"{what}: {error.message}", hint=error.hint) from None


def _each_picture(row: Mapping[str, Json], read: _Read, images: str) -> dict[str, Json]:
    """The row with every picture's place read anew."""
    made = dict(row)
    if _is_given(made.get(images)):
        made[images] = list[Json](_urls(made[images], read))
    for name in ("messages", "input"):
        if isinstance(messages := made.get(name), list):
            made[name] = [
                _message(message, f"{name}[{place}]", read)
                for place, message in enumerate(messages)
            ]
    return made


def _is_given(images: Json) -> bool:
    return images is not None and images != []


def _urls(given: Json, read: _Read) -> Iterator[str]:
    """What ``images`` says: paths, URLs, ``{"bytes", "path"}`` or parts; one or a list of them."""
    for place, one in enumerate(given if isinstance(given, list) else [given]):
        field = f"{IMAGES}[{place}]"
        url = one if isinstance(one, str) else _url(one, field) if isinstance(one, dict) else None
        if url is None:
            raise InputError(
                f"{field}: {one!r:.60} is no picture",
                hint="a path beside the file of rows, or a data URL; what is else called "
                "'images' goes into the metadata: --map pictures=images",
            )
        yield read(field, url)


def _url(part: Mapping[str, Json], field: str) -> str | None:
    try:
        if isinstance(held := part.get("bytes"), str):
            return held
        return url_of(cast("dict[str, object]", part))
    except InputError as error:
        raise InputError(f"{field}: {error.message}", hint=error.hint) from None


def _message(message: Json, field: str, read: _Read) -> Json:
    content = message.get("content") if isinstance(message, dict) else None
    if not isinstance(message, dict) or not isinstance(content, list):
        return message
    parts: list[Json] = []
    for place, part in enumerate(content):
        is_picture = isinstance(part, dict) and part.get("type") in PICTURE_PARTS
        where = f"{field}.content[{place}]"
        url = _url(part, where) if isinstance(part, dict) and is_picture else None
        parts.append(part if url is None else _part(read(where, url)))
    return {**message, "content": parts}


def _part(url: str) -> Json:
    return {"type": "image_url", "image_url": {"url": url}}


def placed(row: Mapping[str, Json]) -> dict[str, Json]:
    """A row with ``images``, with each of them in the turn where it belongs, and without the field.

    Raises:
        InputError: If it says what no picture is, or more or fewer than have a place.
    """
    made = dict(row)
    given = made.pop(IMAGES)
    if not _is_given(given):
        return made
    urls = list(_urls(given, _known))
    messages = made.get("messages")
    if messages is None:
        question = made.get("question")
        said: list[Json] = [{"type": "text", "text": question}] if question else []
        made["messages"] = [{"role": "user", "content": [*said, *map(_part, urls)]}]
        return made
    if not isinstance(messages, list):
        raise InputError("'messages' must be a list")
    rest = list(urls)
    filled = [_filled(message, rest, len(urls)) for message in messages]
    if len(rest) == len(urls):  # no turn has a place for them
        made["messages"] = _said_last(filled, urls)
    elif rest:
        many = f"'{IMAGES}' has {len(urls)} pictures, and the messages have places for"
        raise InputError(f"{many} {len(urls) - len(rest)}")
    else:
        made["messages"] = filled
    return made


def _known(field: str, url: str) -> str:
    _checked(lambda: Picture.of_url(url), field)
    return url


def _filled(message: Json, rest: list[str], many: int) -> Json:
    """A message with the next pictures in its places, which are taken from the rest."""
    content = message.get("content") if isinstance(message, dict) else None
    if not isinstance(message, dict) or not isinstance(content, list):
        return message
    parts: list[Json] = []
    for part in content:
        is_picture = isinstance(part, dict) and part.get("type") in PICTURE_PARTS
        if isinstance(part, dict) and is_picture and _url(part, "messages") is None:
            if not rest:
                raise InputError(f"the messages have places for more than the {many} of '{IMAGES}'")
            parts.append(_part(rest.pop(0)))
            continue
        parts.append(part)
    return {**message, "content": parts}


def _said_last(messages: list[Json], urls: list[str]) -> list[Json]:
    """The messages with pictures at the end of what the user says last."""
    for place in reversed(range(len(messages))):
        message = messages[place]
        if isinstance(message, dict) and message.get("role") == "user":
            content = message.get("content")
            said: list[Json] = [{"type": "text", "text": content}] if content else []
            parts = [*(content if isinstance(content, list) else said), *map(_part, urls)]
            return [*messages[:place], {**message, "content": parts}, *messages[place + 1 :]]
    raise InputError(
        f"'{IMAGES}' has pictures, and no user has a turn that they belong to",
        hint='say where: {"type": "image"} among the parts of a message',
    )
