#!/bin/sh
# Install what some tests run for real: podman, for cases in container images; chromium, for the web
# page; HUD's SDK and OpenEnv, into .bench; and command-line agents, into .tools/agents. Quick when
# nothing changed; tests of what cannot be had are skipped.
set -eu
cd "$(dirname "$0")/.."
[ -x .venv/bin/python ] || sh tools/setup.sh

# apt_install PACKAGE…, where that can be done.
apt_install() {
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 || return 0
  get="env DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends"
  $get install "$@" >/dev/null 2>&1 || { $get update >/dev/null && $get install "$@" >/dev/null; } || true
}

has_podman() { command -v podman >/dev/null 2>&1 && command -v runc >/dev/null 2>&1; }
if ! has_podman; then
  echo "installing podman and runc, which the tests of container images run" >&2
  apt_install podman runc
fi
has_podman || echo "podman and runc are missing: tests of container images are skipped" >&2

has_chromium() {
  for name in chromium-headless-shell chromium chromium-browser; do
    command -v "$name" >/dev/null 2>&1 && return
  done
  return 1
}
# The one that never has windows takes a third less of a processor; not every system has it.
if ! command -v chromium-headless-shell >/dev/null 2>&1 &&
  { ! has_chromium || apt-cache show chromium-headless-shell >/dev/null 2>&1; }; then
  echo "installing chromium, which the tests of the web page run" >&2
  apt_install chromium-headless-shell fonts-dejavu-core
fi
has_chromium || apt_install chromium fonts-dejavu-core
has_chromium || echo "chromium is missing: tests of the web page are skipped" >&2

.venv/bin/python -m bench.peers hud ||
  echo "HUD's SDK could not be installed: the tests of environments with it are skipped" >&2
.venv/bin/python -m bench.peers openenv ||
  echo "OpenEnv could not be installed: the tests of environments with it are skipped" >&2
.venv/bin/python -m bench.peers evaluators ||
  echo "Inspect, pydantic-evals, DeepEval and MLflow could not be installed: the tests of graders in them are skipped" >&2

for trainer in trainers openrlhf; do
  .venv/bin/python -m bench.peers "$trainer" ||
    echo "$trainer could not be installed: the tests of assay's rewards in it are skipped" >&2
done

codex=0.169.0 opencode=1.18.33 gemini=0.61.0 mini=2.4.6
place=.tools/agents
stamp=$place/.set-up

[ "$(cat "$stamp" 2>/dev/null)" != "$codex $opencode $gemini $mini" ] || exit 0
if command -v npm >/dev/null 2>&1; then
  mkdir -p "$place"
  echo '{"private": true}' >"$place/package.json"
  npm install --prefix "$place" --no-audit --no-fund --loglevel=error --ignore-scripts \
    "@openai/codex@$codex" "opencode-ai@$opencode" "@google/gemini-cli@$gemini" >/dev/null &&
    (cd "$place/node_modules/opencode-ai" && node postinstall.mjs >/dev/null) ||
    { echo "Codex, OpenCode and Gemini CLI could not be installed: their tests are skipped" >&2; exit 0; }
else
  echo "npm is missing: tests of agents that it installs are skipped; apt-get install npm" >&2
fi
uv=$(command -v uv || echo .tools/bin/uv)
"$uv" venv --quiet --clear --python .venv/bin/python "$place/mini"
# Its model client imports `mcp` and does not declare it.
"$uv" pip install --quiet --python "$place/mini/bin/python" \
  "mini-swe-agent==$mini" mcp ||
  { echo "mini-SWE-agent could not be installed: its test is skipped" >&2; exit 0; }
echo "$codex $opencode $gemini $mini" >"$stamp"
