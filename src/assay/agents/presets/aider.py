"""Aider: edits files as its model says it in words."""

from __future__ import annotations

from assay.agents.presets.declaration import Preset

_OPTIONS = (
    "--yes-always",
    "--no-auto-commits",
    "--no-gitignore",
    "--no-check-update",
    "--no-show-release-notes",
    "--no-show-model-warnings",
    "--no-detect-urls",
    "--no-pretty",
    "--no-fancy-input",
    "--no-stream",
    "--analytics-disable",
    "--model=openai/{model_name}",
    "--chat-history-file=/tmp/aider.chat.md",
    "--input-history-file=/tmp/aider.input",
)
# It knows of the files that git knows, and of no others. What it makes for itself goes again.
_IN_A_REPOSITORY = """\
made=
if [ ! -e .git ]; then
  made=1
  git init -q && git add -A && git commit -q --allow-empty -m begin
fi
"$@"
code=$?
rm -rf .aider.tags.cache*
[ -z "$made" ] || rm -rf .git
exit $code"""

PRESET = Preset(
    name="aider",
    program="aider",
    install="uv tool install --compile-bytecode aider-chat",
    setup="pip install aider-chat",
    licence="Apache-2.0",
    protocol="chat",
    tells="nothing",
    around=_IN_A_REPOSITORY,
    arguments=(*_OPTIONS, "--message={prompt}"),
    resume=(*_OPTIONS, "--restore-chat-history", "--message={prompt}"),
    env={
        "GIT_AUTHOR_NAME": "aider",
        "GIT_AUTHOR_EMAIL": "aider@localhost",
        "GIT_COMMITTER_NAME": "aider",
        "GIT_COMMITTER_EMAIL": "aider@localhost",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "COLUMNS": "200",
    },
)
