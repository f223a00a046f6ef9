#!/bin/sh
# Build .venv from the lock, and say what of the machine is missing. Quick when nothing changed.
#   tools/setup.sh                  with the first Python on PATH that assay runs on
#   tools/setup.sh 3.12 | PATH      .venv-3.12, with that Python
set -eu
cd "$(dirname "$0")/.."
. tools/python.sh

asked=${1-}
venv=$(venv_of "$asked")
stamp=$venv/.set-up
as_root=
[ "$(id -u)" = 0 ] || as_root=sudo

can_install() { command -v apt-get >/dev/null 2>&1 && { [ -z "$as_root" ] || sudo -n true 2>/dev/null; }; }

apt_install() {
  apt_get="$as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq"
  $apt_get install -y "$@" >/dev/null 2>&1 ||
    { $apt_get update >/dev/null && $apt_get install -y "$@" >/dev/null; }
}

# uv: what is on PATH, else a private one in .tools.
find_uv() {
  if command -v uv >/dev/null 2>&1 && uv --version >/dev/null 2>&1; then command -v uv; return; fi
  if [ ! -x .tools/bin/uv ]; then
    echo "installing uv into .tools" >&2
    rm -rf .tools
    if ! "$1" -m venv .tools >/dev/null 2>&1; then
      rm -rf .tools
      can_install || {
        echo "python3-venv is missing; run: ${as_root:+sudo }apt-get install python3-venv" >&2
        exit 1
      }
      apt_install python3-venv
      "$1" -m venv .tools
    fi
    .tools/bin/python -m pip install --quiet --disable-pip-version-check "uv>=0.5" >&2
  fi
  echo .tools/bin/uv
}

if ! command -v bwrap >/dev/null 2>&1; then
  if can_install; then
    echo "installing bubblewrap, the sandbox that graded code runs in" >&2
    apt_install bubblewrap || echo "bubblewrap could not be installed; see: assay doctor" >&2
  else
    echo "bubblewrap is missing: what runs in the sandbox will be an error until you run" >&2
    echo "    sudo apt-get install bubblewrap" >&2
  fi
fi
has_postgres() { command -v initdb >/dev/null 2>&1 || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; }
if ! has_postgres; then
  if can_install; then
    echo "installing PostgreSQL, which the store's tests start for themselves" >&2
    apt_install postgresql || true
  fi
  has_postgres || echo "PostgreSQL is missing: tests that need it are skipped; apt-get install postgresql" >&2
fi
if ! command -v git >/dev/null 2>&1 && can_install; then apt_install git || true; fi
# The kernel's own numbers of its calls, which tests of the filters compare with.
if [ ! -e /usr/include/asm-generic/unistd.h ] && can_install; then apt_install linux-libc-dev || true; fi

python=$(find_python "$asked") || {
  echo "assay needs Python 3.11 or newer; install it, for example: apt-get install python3" >&2
  exit 1
}
base=$("$python" -c 'import os, sys; print(os.path.realpath(sys.executable))')
# .venv stays what it was built with; one that is asked for is of the Python that is asked for.
[ -z "$asked" ] || [ "$(cat "$stamp" 2>/dev/null)" = "$base" ] || rm -rf "$venv"
if [ -f "$stamp" ] && [ "$stamp" -nt requirements.lock ] && [ "$stamp" -nt pyproject.toml ]; then
  exit 0
fi
uv=$(find_uv "$python")
[ -x "$venv/bin/python" ] || "$uv" venv --quiet --python "$python" "$venv"
"$uv" pip sync --quiet --python "$venv/bin/python" --require-hashes requirements.lock
"$uv" pip install --quiet --python "$venv/bin/python" --no-deps --no-build-isolation --editable .
echo "$base" >"$stamp"
