"""The first thing that runs in the sandbox of a function worker.

``worker.py CONTROL NAMESPACED UID LIMIT_PROCESSES``, all of them numbers; `confine` says what they
mean. Loads our own modules by their full names without running any package's ``__init__``, and
forgets them by name again: what a program imports is Python's, or comes with the program.
"""

import os
import sys

_PACKAGES = ("assay", "assay.sandbox", "assay.sandbox.functions", "assay.sandbox.functions.inside")


def main() -> None:
    """Confine this process, wait for a program, then serve calls until the host hangs up."""
    control, namespaced, uid, limit_processes = (int(word) for word in sys.argv[1:5])
    # The dynamic linker has read it; no program is to see it.
    os.environ.pop("LD_BIND_NOW", None)
    here = __file__.rpartition("/")[0]
    for name in _PACKAGES:
        sys.modules[name] = type(sys)(name)
        sys.modules[name].__path__ = [here]
    from assay.sandbox.functions.inside.confine import confine
    from assay.sandbox.functions.inside.serve import serve
    from assay.sandbox.functions.inside.wire import Line, Pipes

    line, pipes = Line(control), Pipes()
    confinement = confine(
        line, namespaced=bool(namespaced), uid=uid, limit_processes=bool(limit_processes)
    )
    for name in [name for name in sys.modules if name.partition(".")[0] == "assay"]:
        del sys.modules[name]
    sys.argv[:] = [""]
    serve(line, pipes, confinement)


if __name__ == "__main__":
    main()
