"""The ``assay`` command as a process: Ctrl-C ends it without a trace while it is still loading."""

import gc
import signal

_IS_OURS = signal.getsignal(signal.SIGINT) is signal.default_int_handler
if _IS_OURS:  # one that is ignored stays ignored
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def main() -> None:
    """Run the command line; see `assay.cli.main.main`."""
    # What is loaded stays: to look through it again and again, and at the end, takes a tenth.
    gc.set_threshold(50_000)  # objects made between two collections
    from assay.cli import main as cli

    cli.speak_to_whoever_reads()
    try:
        cli.main(is_loaded=_catch_interrupts)
    finally:
        gc.freeze()


def _catch_interrupts() -> None:
    """From here on, Ctrl-C is for the command, which keeps what is finished."""
    if _IS_OURS:
        signal.signal(signal.SIGINT, signal.default_int_handler)


if __name__ == "__main__":
    main()
