"""The processes that read source files: forks of one that is warm."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from assay.errors import GraderError
from assay.graders.stubs import reader
from assay.graders.stubs.reader import ReaderTemplate, SourceReader


@pytest.fixture
def template(monkeypatch: pytest.MonkeyPatch) -> Iterator[ReaderTemplate]:
    """One of the test's own."""
    made = ReaderTemplate()
    monkeypatch.setattr(reader, "TEMPLATE", made)
    yield made
    made.close()


def _reads() -> bool:
    with SourceReader() as source:
        return str(source.python_code(b"x = 1  # one\n")).strip() == "x = 1"


def _children() -> set[int]:
    found = Path(f"/proc/self/task/{os.getpid()}/children").read_text("ascii")
    return set(map(int, found.split()))


def _descriptors() -> set[int]:
    links = {
        int(link.name): str(link.readlink())
        for link in Path("/proc/self/fd").iterdir()
        if link.is_symlink()
    }
    return {number for number, target in links.items() if target.startswith("socket:")}


def test_readers_are_forks_of_one_process(template: ReaderTemplate) -> None:
    before = _children()
    assert _reads()
    started = _children() - before
    (pid,) = started
    assert _reads()
    assert _children() - before == started
    os.kill(pid, 9)  # one that died is replaced
    assert _reads()
    assert pid not in _children()
    template.close()
    assert _children() == before


def test_descriptors_that_a_daemon_closed_are_left_to_who_has_them_now(
    template: ReaderTemplate,
) -> None:
    before = _descriptors()
    assert _reads()
    (number,) = _descriptors() - before
    os.close(number)
    end, other = os.pipe()
    try:
        assert number in (end, other)
        assert _reads()
        os.fstat(number)
    finally:
        os.close(end)
        os.close(other)
    assert template


def test_a_file_that_kills_its_reader_kills_no_other(
    template: ReaderTemplate, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SourceReader() as one, SourceReader() as other:
        assert other.python_code(b"y = 1\n") == "y = 1\n"
        monkeypatch.setattr(reader, "_CPU_SECONDS", 0.01)
        slow = b"x = [" + b"(1, 2), " * 200_000 + b"]\n"
        assert "too long" in str(one.read(slow, "python"))
        monkeypatch.setattr(reader, "_CPU_SECONDS", 10.0)
        assert other.python_code(b"y = 1\n") == one.python_code(b"y = 1\n") == "y = 1\n"
    assert template


def test_one_that_cannot_start_is_an_error(
    template: ReaderTemplate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "_START", "raise SystemExit")
    with pytest.raises(GraderError, match="did not start"):
        _reads()
    monkeypatch.undo()
    assert _reads(), template
