"""Pictures in conversations: what is taken, and what is refused and why."""

from __future__ import annotations

import hashlib

import pytest

from assay.errors import InputError
from assay.scoring.json_safe import Json
from assay.types.picture import MOST_BYTES, Picture
from assay.types.thread import StringThread
from tests.each import each
from tests.pictures import chunk, jpeg, png, url, webp


@each(
    ("data", "kind", "size"),
    [(png(2, 3), "png", (2, 3)), (jpeg(3, 5), "jpeg", (3, 5)), (webp(7, 9), "webp", (7, 9))],
)
def test_the_bytes_say_what_a_picture_is(data: bytes, kind: str, size: tuple[int, int]) -> None:
    """Kind, size and digest; and it is the same by way of its data URL."""
    picture = Picture(data)
    assert (picture.media_type, (picture.width, picture.height)) == (f"image/{kind}", size)
    assert picture.digest == hashlib.sha256(data).hexdigest()
    assert Picture.of_url(picture.url) == picture


@each(
    ("given", "why"),
    [
        (url(png()[:-8]), "cut off or damaged"),
        (url(jpeg()[:-2]), "cut off or damaged"),
        (url(webp()[:-1]), "cut off or damaged"),
        (url(png(), "image/jpeg"), "said to be image/jpeg and is image/png"),
        (url(png(60_000, 60_000)), "60,000 x 60,000 pixels"),
        (url(png(0, 1)), "no pixels"),
        (url(png(more=chunk(b"acTL", b"\0" * 8))), "animated"),
        (url(b"GIF89a" + b"\0" * 20, "image/gif"), "it is no PNG, JPEG or WebP"),
        (url(b"<svg xmlns='x'><script/></svg>", "image/svg+xml"), "SVG"),
        (url(b""), "empty"),
        (url(png() + b"\0" * MOST_BYTES), "at most 5,242,880"),
        ("data:image/png;base64,@@@", "its base64 is broken"),
        ("data:image/png;base64,iVBOR", "its base64 is broken"),
        ("data:image/png,hello", "has to be base64"),
        ("https://example.org/a.png", "nothing is fetched"),
        ("/etc/passwd", "is no data URL"),
    ],
)
def test_what_is_no_such_picture_is_refused(given: str, why: str) -> None:
    """By its bytes and its header alone: nothing is decoded and nothing fetched."""
    with pytest.raises(InputError) as failure:
        Picture.of_url(given)
    assert why in failure.value.message


def test_a_thread_keeps_its_pictures() -> None:
    """Turn by turn, through JSON and back, beside a text that they are no part of."""
    parts: list[Json] = [{"type": "text", "text": "What is it?"}, Picture(png()).part]
    thread = StringThread.from_messages(
        [{"role": "user", "content": parts}, {"role": "assistant", "content": "red"}]
    )
    assert [turn.content for turn in thread] == ["What is it?", "red"]
    assert [one.digest for one in thread.images()] == [Picture(png()).digest]
    assert thread.user("more").images() == thread.images()
    again = StringThread.from_json(thread.to_json())
    assert again == thread
    assert again != StringThread(thread.turns)
    assert thread.get_fragments()[0][1][1] == Picture(png()).part


def test_other_protocols_parts_are_pictures_too() -> None:
    """Anthropic's and that of OpenAI's responses; a mere place of one is none."""
    source = {"type": "base64", "media_type": "image/png", "data": url(png()).partition(",")[2]}
    content: list[Json] = [
        {"type": "image", "source": dict[str, Json](source)},
        {"type": "input_image", "image_url": url(jpeg(), "image/jpg")},
        {"type": "image"},
    ]
    thread = StringThread.from_messages([{"role": "user", "content": content}])
    assert [one.media_type for one in thread.images()] == ["image/png", "image/jpeg"]


def test_a_part_that_holds_no_picture_is_named() -> None:
    """With its place, and what to write instead."""
    bad: Json = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    with pytest.raises(InputError, match=r"messages\[0\].content\[1\]: .*fetched") as failure:
        StringThread.from_messages([{"role": "user", "content": [{"type": "text"}, bad]}])
    assert "data:image/png;base64" in failure.value.hint


def test_there_are_only_so_many_in_a_thread() -> None:
    """A thousand pictures are no conversation."""

    def thread(many: int) -> StringThread:
        content = [Picture(png()).part] * many
        return StringThread.from_messages([{"role": "user", "content": list(content)}])

    assert len(thread(20).images()) == 20
    for many in (21, 1_000):
        with pytest.raises(InputError, match=f"there are {many:,} pictures; at most 20"):
            thread(many)
