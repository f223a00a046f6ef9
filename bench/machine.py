"""What the figures were measured on: enough to judge them, nothing that names the machine."""

from __future__ import annotations

import os
import platform
from dataclasses import asdict, dataclass
from pathlib import Path

__all__ = ["Machine", "describe"]


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine at one moment.

    Attributes:
        system: Kernel name and architecture.
        processor: Model of the processor, or empty.
        cores: Processors that this process may use.
        python: Version of the interpreter.
        load: Load averages over 1, 5 and 15 minutes.
    """

    system: str
    processor: str
    cores: int
    python: str
    load: tuple[float, float, float]

    def line(self) -> str:
        """One line for people."""
        processor = f"{self.processor}, " if self.processor else ""
        return (
            f"{self.system}, {processor}{self.cores} cores, {self.python}, "
            f"load average {self.load[0]:.1f}"
        )

    def as_json(self) -> dict[str, object]:
        """The same for programs."""
        return asdict(self)


def describe() -> Machine:
    """Look at this machine now."""
    return Machine(
        system=f"{platform.system()} {platform.machine()}",
        processor=_processor(),
        cores=len(os.sched_getaffinity(0)),
        python=f"{platform.python_implementation()} {platform.python_version()}",
        load=os.getloadavg(),
    )


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return ""
    names = (line.partition(":")[2].strip() for line in text.splitlines() if "model name" in line)
    return next(names, "")
