"""The harness ``echo``: gives the prompt back. A floor that no sound case lets pass."""

from __future__ import annotations

import os

from assay.frozen import frozen
from assay.graders.usage import OBSERVED
from assay.sandbox.host import open_inside
from assay.types.run import Run
from assay.types.trace import AgentStep


@frozen
class EchoAgent:
    """Writes the prompt to ``ANSWER.md`` in the workspace, if there is one, and answers with it."""

    name: str = "echo"

    async def __call__(self, run: Run) -> None:
        """Do the work."""
        text = run.prompt_text
        if run.workspace is not None:
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
            opened = open_inside(run.workspace.path, "ANSWER.md", flags)
            with os.fdopen(opened, "w", -1, "utf-8") as file:
                file.write(text)
        run.record(AgentStep(content=text, done=True, model=run.model or None))
        run.trace.content = text
        run.trace.extra[OBSERVED] = False
        run.cost_usd, run.tokens = 0.0, 0
