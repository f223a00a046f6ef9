"""Head and tail of a stream, in bounded memory."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from assay.sandbox.command import Capture


@given(chunks=st.lists(st.binary(max_size=40), max_size=20), keep=st.integers(0, 60))
def test_head_and_tail(chunks: list[bytes], keep: int) -> None:
    capture, whole = Capture(keep), b"".join(chunks)
    for chunk in chunks:
        capture.add(chunk)
    assert capture.total == len(whole)
    assert capture.truncated == (len(whole) > keep)
    if not capture.truncated:
        assert capture.text() == whole.decode("utf-8", "replace")
        return
    head, tail = keep // 2, keep - keep // 2
    start = whole[:head].decode("utf-8", "replace")
    end = whole[len(whole) - tail :].decode("utf-8", "replace")
    assert capture.text() == f"{start}\n... [{len(whole) - keep} bytes cut] ...\n{end}"


def test_memory_is_bounded() -> None:
    capture = Capture(1000)
    for _ in range(100):
        capture.add(b"x" * 65_536)
        held = len(capture._head) + len(capture._tail)
        assert held < 1000 + 2 * 65_536 + 1
    assert capture.text().count("x") == 1000
