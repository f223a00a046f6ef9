"""Pictures of rows: by path, as data URLs, as bytes in Parquet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from assay.errors import InputError
from assay.scoring.json_safe import Json
from assay.tasks.row_files import RowReading
from assay.tasks.rows import Row, read_row, read_rows
from assay.types.picture import MOST_BYTES, Picture
from tests.command_line import assay, cells
from tests.pictures import jpeg, png, url
from tests.written_files import write_rows

RED = Picture(png())


def rows_of(directory: Path, *rows: dict[str, Any], **reading: Any) -> list[Row]:
    file = write_rows(directory / "rows.jsonl", rows)
    return list(read_rows(str(file), reading=RowReading(**reading)))


def pictures_of(row: Row) -> list[tuple[int, str]]:
    thread = row.submission.thread
    assert thread is not None
    return [(place, one.digest) for place, one in thread.pictures]


def test_a_path_stands_for_the_file_beside_the_rows(tmp_path: Path) -> None:
    """What was asked is shown with it; the answer and the question are as they were."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in/red.png").write_bytes(png())
    row = {"question": "Which colour?", "answer": "red", "images": ["in/red.png"]}
    [read] = rows_of(tmp_path, row)
    assert pictures_of(read) == [(0, RED.digest)]
    assert (read.submission.question, read.submission.answer) == ("Which colour?", "red")
    assert read.submission.metadata == {}
    photo = {"answer": "red", "photo": "in/red.png"}
    [mapped] = rows_of(tmp_path, photo, mapping={"images": "photo"})
    assert pictures_of(mapped) == [(0, RED.digest)]
    # What is kept of the row needs no file any more.
    (tmp_path / "in/red.png").unlink()
    assert pictures_of(read_row(read.fields)) == [(0, RED.digest)]


def test_messages_have_places_for_them() -> None:
    """As datasets for vision models do; without a place they belong to what the user says last."""
    asked: list[Json] = [{"type": "image"}, {"type": "text", "text": "and"}, {"type": "image"}]
    said: Json = [{"role": "user", "content": asked}, {"role": "assistant", "content": "both"}]
    other = url(jpeg(), "image/jpeg")
    read = read_row({"messages": said, "images": [RED.url, {"bytes": other, "path": None}]})
    assert pictures_of(read) == [(0, RED.digest), (0, Picture(jpeg()).digest)]
    plain: Json = [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]
    read = read_row({"messages": plain, "completion": "c", "images": RED.url})
    assert pictures_of(read) == [(1, RED.digest)]


@pytest.mark.parametrize(
    ("images", "why"),
    [
        (["../red.png"], "leads out of the dataset's directory"),
        (["/etc/hostname"], "leads out of the dataset's directory"),
        (["link.png"], "cannot be read as a regular file"),
        (["away/red.png"], "cannot be read as a regular file"),
        (["none.png"], "is missing"),
        (["huge.png"], "is too large"),
        (["page.svg"], "SVG"),
        (["notes.txt"], "no PNG, JPEG or WebP"),
        (["https://example.org/a.png"], "nothing is fetched"),
        (["data:image/png;base64,%%"], "its base64 is broken"),
        ([3], "is no picture"),
        (7, "is no picture"),
        (["red.png"] * 1_000, "more than 20 pictures"),
    ],
)
def test_a_row_whose_picture_is_none_is_refused(tmp_path: Path, images: object, why: str) -> None:
    """Naming file, line and field; nothing outside the dataset's directory is read."""
    home = tmp_path / "data"
    home.mkdir()
    for place in (tmp_path / "red.png", home / "red.png"):
        place.write_bytes(png())
    (home / "link.png").symlink_to(tmp_path / "red.png")
    (home / "away").symlink_to(tmp_path)
    (home / "page.svg").write_text("<svg onload='alert(1)'/>")
    (home / "notes.txt").write_text("no picture")
    with (home / "huge.png").open("wb") as file:
        file.truncate(200 << 20)
    with pytest.raises(InputError) as failure:
        rows_of(home, {"answer": "a"}, {"answer": "b", "images": images})
    assert failure.value.location.line == 2
    assert why in failure.value.message
    assert failure.value.message.startswith("images[")


def test_the_bytes_of_all_pictures_of_a_row_are_bounded() -> None:
    """Three that are small enough each may be too much together."""
    large = url(png() + b"\0" * (MOST_BYTES - 1_000))
    with pytest.raises(InputError, match="at most 10,485,760 may be in a row"):
        read_row({"answer": "a", "images": list[Json]([large] * 3)})


@pytest.mark.parametrize("many", [1, 3])
def test_places_and_pictures_must_agree(many: int) -> None:
    """Else nobody knows which is where."""
    asked: list[Json] = [{"type": "image"}, {"type": "image"}]
    row: dict[str, Json] = {"messages": [{"role": "user", "content": asked}], "completion": "x"}
    with pytest.raises(InputError, match="places for"):
        read_row({**row, "images": list[Json]([RED.url] * many)})


def test_a_path_is_no_picture_where_there_is_no_directory() -> None:
    """A server reads no file for whoever asks it."""
    with pytest.raises(InputError, match=r"images\[0\]: /etc/hostname is no data URL"):
        read_row({"answer": "a", "images": ["/etc/hostname"]})


def test_parquet_holds_the_bytes(tmp_path: Path) -> None:
    """In the forms that datasets have: bare bytes, or bytes and a path; also under another name."""
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    held = [{"bytes": png(), "path": "x.png"}]
    table = pa.table({"answer": ["red"], "images": [held]})
    parquet.write_table(table, tmp_path / "a.parquet")
    [read] = read_rows(str(tmp_path / "a.parquet"))
    assert pictures_of(read) == [(0, RED.digest)]
    parquet.write_table(pa.table({"answer": ["red"], "image": [png()]}), tmp_path / "b.parquet")
    reading = RowReading(mapping={"images": "image"})
    [read] = read_rows(str(tmp_path / "b.parquet"), reading=reading)
    assert pictures_of(read) == [(0, RED.digest)]
    (tmp_path / "g.yaml").write_text("[{type: exact_match, expected: red}]")
    for out in ((), ("--out", "parts/"), ("--out", "parts/")):
        words = ("grade", "b.parquet", "g.yaml", "--map", "images=image", *out)
        done = assay(*words, cwd=tmp_path)
        assert (done.returncode, "PASS" in done.stdout) == (0, True), done.stderr
    parquet.write_table(pa.table({"answer": ["a"], "image": [b"no"]}), tmp_path / "c.parquet")
    with pytest.raises(InputError, match="'image' holds bytes of which, as a picture, it is no"):
        list(read_rows(str(tmp_path / "c.parquet"), reading=reading))


def test_a_judge_that_would_see_no_picture_is_told_where_the_rows_have_theirs(
    tmp_path: Path,
) -> None:
    (tmp_path / "red.png").write_bytes(png())
    judge = "[{type: llm_judge, model: fake, images: true, criteria: [says red]}]"
    (tmp_path / "judge.yaml").write_text(judge)
    (tmp_path / "rows.jsonl").write_text('{"answer": "red", "photo": "red.png"}\n')
    said = "the first row has none but in 'photo' (--map images=photo)"
    assert said in assay("grade", "rows.jsonl", "judge.yaml", cwd=tmp_path).stderr
    mapped = assay("grade", "rows.jsonl", "judge.yaml", "--map", "images=photo", cwd=tmp_path)
    assert "looks at pictures" not in mapped.stderr


@pytest.mark.sandbox
def test_the_example_tells_right_colours_from_wrong(tmp_path: Path) -> None:
    """A function reads them from the bytes, in the sandbox."""
    examples = Path(__file__).parents[2] / "examples" / "pictures"
    done = assay("grade", f"{examples}/rows.jsonl", f"{examples}/colour.py", "--json", cwd=tmp_path)
    rewards = {cell["case"]: cell["reward"] for cell in cells(done)}
    assert rewards == {"red": 1.0, "wrong": 0.0, "drawn": 1.0}
    assert assay("validate", f"{examples}/judge.yaml", cwd=tmp_path).returncode == 0
