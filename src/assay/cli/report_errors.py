"""The one place where an exception becomes a message and an exit status."""

from __future__ import annotations

import sys
from collections.abc import Callable

from assay.errors import AssayError, InputError

__all__ = ["BAD_INPUT", "INTERRUPTED", "NOT_GRADED", "reported"]

BAD_INPUT = 2
NOT_GRADED = 3
INTERRUPTED = 130


def reported(command: Callable[[], int]) -> int:
    """Run a command and turn whatever it raises into a message and an exit status.

    Returns:
        What the command returned; 2 for bad input, 3 for a fault of ours or of the machine, 130
        when interrupted.
    """
    try:
        return command()
    except KeyboardInterrupt:
        print("interrupted; what was finished is kept", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()  # whoever read our output has gone; there is nobody to tell
        return 0
    except AssayError as error:
        print(f"error: {error}", file=sys.stderr)
        return BAD_INPUT if isinstance(error, InputError) else NOT_GRADED
