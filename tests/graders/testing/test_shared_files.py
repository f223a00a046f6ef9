"""The temporary directory of judge and submission: there if the reference needs it, and bounded.

At the level of graded runs in the real sandbox: the scores are what an attack would gain or harm.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest

from assay.scoring.results import SubScore
from tests.boundary_runs import grade, outcomes

pytestmark = pytest.mark.sandbox

_CODE = ["code:kit.answer", "code:kit.save"]
_APART = {"seed": "00", "needs": {"": _CODE}}
_NEEDED = {"seed": "00", "needs": {"": [*_CODE, "files:"]}}
_LEARNS = {"seed": "00", "learns": True}
_WRITES = """
import os, tempfile

def save(text):
    place = tempfile.mkdtemp()
    with open(f"{place}/saved", "w") as file:
        file.write(text)
    return f"{place}/saved"
"""
_READS = "import kit\n\ndef test_saved():\n    assert open(kit.save('x')).read() == 'x'\n"


def test_files_are_shared_where_the_reference_needs_it_and_nowhere_else() -> None:
    assert grade({"kit.py": _WRITES}, {"test_kit.py": _READS}, contract=_NEEDED).value == 1.0
    apart = grade({"kit.py": _WRITES}, {"test_kit.py": _READS}, contract=_APART)
    assert (apart.value, "No such file" in outcomes(apart)["test_kit.py::test_saved"][1]) == (
        0.0,
        True,
    )


@pytest.mark.parametrize(
    ("test", "needs"),
    [
        (_READS, True),
        ("import kit\n\ndef test_none(tmp_path):\n    assert kit.save\n", True),
        (
            "import tempfile, kit\n\ndef test_gone():\n    tempfile.NamedTemporaryFile().close()\n",
            True,
        ),
        # Python itself tries whether the directory can be used, which is nobody's need.
        ("import tempfile, kit\n\ndef test_asks():\n    assert tempfile.gettempdir()\n", False),
    ],
)
def test_use_of_temporary_files_is_learnt_from_either_side(test: str, *, needs: bool) -> None:
    score = grade({"kit.py": _WRITES}, {"test_kit.py": test}, contract=_LEARNS)
    told: Any = score.metadata
    assert (score.value, "files:" in told.get("needs", {}).get("", [])) == (1.0, needs)


_DEEP = """
import os, tempfile

def answer():
    os.chdir(tempfile.mkdtemp())
    for _ in range(3000):
        os.mkdir("d")
        os.chdir("d")
    return 1
"""
_ANSWER = "import kit\n\ndef test_answer():\n    assert kit.answer() == 2\n"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The engine's directory for temporary files, to see what is left in it."""
    (place := tmp_path / "t").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    return place


@pytest.mark.parametrize("contract", [_APART, _NEEDED])
def test_deny_deep_temporary_directories_get_0_and_leave_nothing(
    place: Path, contract: dict[str, Any]
) -> None:
    score = grade({"kit.py": _DEEP}, {"test_kit.py": _ANSWER}, contract=contract)
    assert (score.status, score.value) == ("scored", 0.0)
    assert list(place.iterdir()) == []


_FILLS = """
import os, tempfile

def answer():
    place = tempfile.mkdtemp()
    %s
    return 2
"""
_HIDDEN = (
    "for n in range(2_100): os.close(os.open(f'{place}/{n}', os.O_CREAT))\n    os.chmod(place, 0)"
)
_LARGE = """for n in range(5):
        with open(f"{place}/{n}", "wb") as file:
            os.posix_fallocate(file.fileno(), 0, 250 << 20)
"""


def _filled(how: str) -> SubScore:
    return grade({"kit.py": _FILLS % how}, {"test_kit.py": _ANSWER}, contract=_NEEDED)


@pytest.mark.parametrize(("how", "said"), [(_HIDDEN, "2,000 files"), (_LARGE, "1 GiB")])
def test_deny_fill_shared_disk_gets_0_and_is_flagged(
    place: Path, how: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a slow disk the true bound is not reached before the call's minute is over.
    monkeypatch.setattr("assay.graders.testing.shared_files._MOST_FILES", 2_000)
    score = _filled(how)
    assert (score.status, score.value) == ("scored", 0.0)
    assert any(said in flag for flag in score.flags), score
    assert list(place.iterdir()) == []


def test_ordinary_temporary_files_keep_their_score() -> None:
    assert _filled("open(f'{place}/x', 'w').write('y'); os.chmod(place, 0)").value == 1.0
