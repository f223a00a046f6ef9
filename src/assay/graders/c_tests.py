"""The kind ``c_tests``: the author's tests in C, and the submission in another process.

A kind of its own, beside ``tests``: there is no command to run and no runner to listen to. What it
takes are headers, sources and how pointers are carried.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from assay.errors import InputError
from assay.graders.base import Grader
from assay.graders.paths import CasePath
from assay.graders.testing.hidden import Injected
from assay.scoring.json_safe import Json
from assay.scoring.results import SubScore
from assay.types.submission import Workspace

__all__ = ["CTestsGrader"]


class CTestsGrader(Grader):
    """Fraction of hidden tests in C that pass, judged in a process apart from the submission.

    The tests are compiled against the author's own headers, in a sandbox that no file of the
    submission ever enters. The functions that the headers declare are stand-ins there: each call is
    carried to the submission's process, in a sandbox of its own, and plain values come back.

    Scored 0: a submission that does not compile. A test during which its process dies, hangs or
    answers nonsense has failed. An error: tests that do not compile, or that call a function which
    cannot be carried.
    """

    name: ClassVar[str] = "c_tests"
    assurance = "separate"

    @classmethod
    def check_options(cls, options: Mapping[str, Json]) -> None:
        """Refuse options that can never work."""
        from assay.graders.stubs.treesitter import require_grammar
        from assay.graders.testing.hidden import read_inject

        read_inject(options.get("inject"))
        require_grammar("c")
        for name in ("headers", "sources"):
            if name in options and not options[name]:
                raise InputError(f"{name} is empty", hint="name at least one file")
        for name, default in (("timeout_s", 300.0), ("test_timeout_s", 60.0)):
            given = options.get(name, default)
            if isinstance(given, int | float) and not given > 0:
                raise InputError(f"{name} must be more than 0")
        threshold = options.get("pass_threshold", 1.0)
        if isinstance(threshold, int | float) and not 0 <= threshold <= 1:
            raise InputError("pass_threshold must be in [0, 1]")

    @classmethod
    async def compute_score(
        cls,
        workspace: Workspace,
        *,
        headers: list[str],
        sources: list[str],
        tests: list[str] | None = None,
        inject: list[CasePath | Injected] | None = None,
        flags: list[str] | None = None,
        buffers: dict[str, dict[str, str | int]] | None = None,
        handles: list[str] | None = None,
        pass_threshold: float = 1.0,
        timeout_s: float = 300.0,
        test_timeout_s: float = 60.0,
    ) -> SubScore:
        """Build the tests and the submission apart, and run each test.

        Args:
            workspace: What is graded. It is not changed.
            headers: Globs of the author's headers that declare what is tested.
            sources: Globs of the submission's ``.c`` files.
            tests: Globs of the test files; by default the hidden ``.c`` files.
            inject: Hidden files: a path goes to the workspace root, ``{src, dest}`` elsewhere.
            flags: Flags for the compiler, such as ``-lm``.
            buffers: By function and parameter (or ``return``): how many elements a pointer leads
                to, as a number or an expression of C over the parameters, or ``string``.
            handles: Types whose pointers no test looks into.
            pass_threshold: The value from which the grader calls itself passed. A gate needs 1.
            timeout_s: Seconds for everything together.
            test_timeout_s: Seconds for each test.

        Raises:
            InputError: For a function that cannot be carried, and files that are not there.
            GraderError: If the tests do not compile, or there is no compiler.
            SandboxError: If the sandbox failed.
        """
        from assay.graders.c.build import CTests
        from assay.graders.c.run import run_c_tests
        from assay.graders.testing.hidden import read_inject
        from assay.graders.tests import reason_of, test_evidence

        command = CTests(
            headers=headers,
            sources=sources,
            tests=tests or (),
            inject=read_inject(inject),
            flags=flags or (),
            buffers=buffers or {},
            handles=handles or (),
            timeout_s=timeout_s,
            test_timeout_s=test_timeout_s,
        )
        run = await run_c_tests(command, workspace)
        value = len(run.passed) / len(run.expected)
        return SubScore(
            name=cls.name,
            value=value,
            passed=value >= pass_threshold,
            reason=reason_of(run),
            assurance="separate",
            metadata=test_evidence(run, cmd=" ".join(["cc", *command.flags, *sources])),
        )
