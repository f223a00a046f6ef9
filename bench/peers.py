"""The packages that assay is measured against: each pinned, each in an environment of its own.

``python -m bench.peers NAME...`` installs some of them, which tests run for real, too.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = [
    "BESIDE",
    "EVALUATORS",
    "PEERS",
    "ROOT",
    "SERVERS",
    "TRAINERS",
    "Peer",
    "PeerError",
    "Wanted",
    "install",
    "main",
]

ROOT = Path(__file__).resolve().parent.parent
_HOME = ROOT / ".bench"
_MINUTES = 15


class PeerError(Exception):
    """Why a peer cannot be measured here."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A package to measure against.

    Attributes:
        name: What the tables call it, and its directory in ``.bench``.
        distribution: What pip calls it.
        version: The pinned version.
        newest_python: The last minor version of Python 3 that it can be installed on.
        oldest_python: The first one.
        extra: What it is given beside it, where it leaves the choice of a client to its users.
        alone: Whether it is installed without what it depends on, as no machine without a GPU has
            that.
    """

    name: str
    distribution: str
    version: str
    newest_python: int = 99
    extra: tuple[str, ...] = ()
    alone: bool = False
    oldest_python: int = 0

    @property
    def requirement(self) -> str:
        """The exact requirement."""
        return " ".join((f"{self.distribution}=={self.version}", *self.extra))


_HUD = Wanted("hud", "hud", "0.6.21", newest_python=12)
_TOUCHSTONE = Wanted("touchstone", "touchstone-eval", "0.1.1")
PEERS = (
    _HUD,
    _TOUCHSTONE,
    Wanted("autoevals", "autoevals", "0.4.1", extra=("openai==3.54.0",)),
    Wanted("rubric", "rubric", "2.2.0", extra=("openai==3.54.0",)),
    Wanted("deepeval", "deepeval", "4.3.1"),
    Wanted("pydantic-evals", "pydantic-evals", "2.62.0"),
)
_ASSAY = ("--editable", str(ROOT))
_VERL = ("TransferQueue==0.1.11", "cachetools", "fastapi", "uvicorn")
"""Of its extra `verl-core`, what its trainer's workers import."""
_MATHS = ("math-verify==0.8.0", "sympy", "antlr4-python3-runtime==4.11.0")
"""What its tasks in mathematics want, some of which its own extra leaves open."""
TRAINERS = (
    Wanted("trl", "trl", "1.16.0", extra=("torch==2.13.0", *_ASSAY)),
    Wanted("verl", "verl", "0.9.1", newest_python=12, extra=("torch==2.13.0", *_VERL, *_ASSAY)),
)
"""Large: installed for what needs them."""
SERVERS = (Wanted("nemo-gym", "nemo-gym", "0.4.0", oldest_python=12, extra=_ASSAY),)
"""Likewise; later ones want a Python that few have."""
BESIDE = (
    _TOUCHSTONE,
    Wanted("rewardkit", "harbor-rewardkit", "0.2.3", oldest_python=12, newest_python=13),
    Wanted("inspect", "inspect-ai", "0.3.285", extra=("latex2sympy2-extended==1.11.0",)),
    _HUD,
    Wanted("lm-eval", "lm-eval", "0.4.13", extra=_MATHS),
)
"""Those that grade what `bench.beside` grades."""
_BESIDE_INSPECT = ("pydantic-evals==2.62.0", "deepeval==4.3.1", "mlflow==3.17.2")
"""Those that agree on what they depend on share an environment."""
EVALUATORS = (Wanted("evaluators", "inspect-ai", "0.3.285", extra=(*_BESIDE_INSPECT, *_ASSAY)),)
"""Likewise."""
_BESIDE_TRL = (
    "verl==0.9.1",
    *_VERL,
    "verifiers==0.4.0",
    "skyrl-gym==0.4.0",
    "tinker-cookbook==0.5.8",
    "adaptive-sdk==0.14.2",
    "torch==2.13.0",
    "jmespath",  # which TRL wants beside the transformers that all of them take
)
"""Likewise: PyTorch and transformers are compiled once for them all."""
_TESTED = (
    *PEERS,
    *TRAINERS,
    *SERVERS,
    *EVALUATORS,
    Wanted("openenv", "openenv", "0.10.0", extra=_ASSAY),
    Wanted("trainers", "trl", "1.16.0", newest_python=12, extra=(*_BESIDE_TRL, *_ASSAY)),
    Wanted("openrlhf", "openrlhf", "0.11.2", 11, ("torch==2.13.0", "aiohttp", *_ASSAY), alone=True),
)
"""Those that can be installed by name: also what only tests run."""


@dataclass(frozen=True, slots=True)
class Peer:
    """An installed peer.

    Attributes:
        name: What the tables call it.
        version: What is installed.
        bin: The directory of its programs.
    """

    name: str
    version: str
    bin: Path

    @property
    def python(self) -> str:
        """Its interpreter."""
        return str(self.bin / "python")


def install(wanted: Wanted, *, offline: bool = False) -> Peer:
    """Install a peer into ``.bench/``, unless it is there already.

    Args:
        wanted: What to install.
        offline: Only look whether it is there.

    Raises:
        PeerError: If it is not there and cannot be installed.
    """
    place = _HOME / wanted.name
    stamp = place / ".installed"
    peer = Peer(wanted.name, wanted.version, place / "bin")
    if stamp.is_file() and stamp.read_text(encoding="utf-8").strip() == wanted.requirement:
        return peer
    if offline:
        raise PeerError(f"{wanted.requirement} is not installed")
    print(f"installing {wanted.requirement} into .bench/ (once)", file=sys.stderr, flush=True)
    shutil.rmtree(place, ignore_errors=True)
    uv = _find_uv()
    _uv([uv, "venv", "--quiet", "--python", _python_for(wanted), str(place)])
    get = [uv, "pip", "install", "--quiet", "--python", peer.python]
    if wanted.alone:
        _uv([*get, *wanted.extra])
        _uv([*get, "--no-deps", f"{wanted.distribution}=={wanted.version}"])
    else:
        _uv([*get, *wanted.requirement.split()])
    stamp.write_text(f"{wanted.requirement}\n", encoding="utf-8")
    return peer


def _find_uv() -> str:
    found = shutil.which("uv") or shutil.which(str(ROOT / ".tools" / "bin" / "uv"))
    if found is None:
        raise PeerError("there is no uv to install it with; run `make setup`")
    return found


def _python_for(wanted: Wanted) -> str:
    """The interpreter that assay runs on where the peer takes it, so that both have the same."""
    here = sys.version_info.minor
    fitting = max(wanted.oldest_python, min(here, wanted.newest_python))
    return sys.executable if fitting == here else _other_python(f"3.{fitting}")


def _other_python(version: str) -> str:
    """What pyenv has of it, which uv does not look for; else uv knows best."""
    home = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    found = sorted(home.glob(f"{version}.*/bin/python3"))
    return str(found[-1]) if found else version


def _environment() -> dict[str, str]:
    """With pip's places for wheels, so that PyTorch comes without CUDA where one has it."""
    found = os.environ.get("PIP_FIND_LINKS", "")
    return {"UV_FIND_LINKS": ",".join(found.split()), **os.environ} if found else dict(os.environ)


def _uv(argv: list[str]) -> None:
    try:
        done = subprocess.run(
            argv,
            capture_output=True,
            text=True,
            timeout=60 * _MINUTES,
            check=False,
            env=_environment(),
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PeerError(f"{' '.join(argv[:3])}: {error}") from error
    if done.returncode != 0:
        raise PeerError(
            done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "uv failed"
        )


def main(names: Sequence[str]) -> int:
    """Install the named peers.

    Returns:
        0, or 1 if one cannot be installed.
    """
    try:
        for wanted in _TESTED:
            if wanted.name in names:
                install(wanted)
    except PeerError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
