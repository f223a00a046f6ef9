# Which Python, and which environment: read by the Makefile and the scripts beside this file.

is_python() { # of a version that assay runs on
  [ -x "$(command -v "$1")" ] && "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

# find_python [3.12 | 3.12.1 | PATH]: what PATH has under its name, else what pyenv has of it.
find_python() {
  case "${1-}" in
    "") for name in python3 python3.14 python3.13 python3.12 python3.11; do
          if is_python "$name"; then command -v "$name"; return; fi
        done
        return 1 ;;
    */*) is_python "$1" && echo "$1"; return ;;
  esac
  if is_python "python$1"; then command -v "python$1"; return; fi
  versions="${PYENV_ROOT:-$HOME/.pyenv}/versions"
  newest=$(ls "$versions" 2>/dev/null | grep -E "^$(echo "$1" | sed 's/\./\\./g')(\.[0-9]+)?$" | sort -V | tail -1)
  [ -n "$newest" ] && is_python "$versions/$newest/bin/python3" && echo "$versions/$newest/bin/python3"
}

# venv_of [VERSION | PATH]: .venv, or .venv-3.12 where a Python is asked for.
venv_of() {
  if [ -z "${1-}" ]; then echo .venv; return; fi
  if ! python=$(find_python "$1"); then
    echo "there is no Python $1 on PATH or under pyenv, or it is older than 3.11" >&2
    return 1
  fi
  "$python" -c 'import sys; print(".venv-%d.%d" % sys.version_info[:2])'
}
