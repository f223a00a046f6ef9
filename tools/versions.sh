#!/bin/sh
# Run the tests of what depends most on the interpreter (sandbox, functions, hidden tests and their
# boundary) on the oldest and the newest Python that the classifiers promise and this machine has,
# but for the one of .venv, which runs them all. What is new in one between them is in the newest,
# too; what is gone from the newest was there in the oldest. Tests in Node are not of them.
set -eu
cd "$(dirname "$0")/.."
. tools/python.sh

sh tools/setup.sh
own=$(.venv/bin/python -c 'import sys; print("%d.%d" % sys.version_info[:2])')
here="" passed="" failed="" missing=""
for version in $(sed -n 's/.*Programming Language :: Python :: \(3\.[0-9]*\).*/\1/p' pyproject.toml); do
  if find_python "$version" >/dev/null; then here="$here $version"; else missing="$missing $version"; fi
done
ends() { [ $# = 0 ] || { oldest=$1; shift $(($# - 1)); printf '%s\n' "$oldest" "$1" | uniq; }; }
for version in $(ends $here); do
  [ "$version" != "$own" ] || continue
  echo "Python $version: $(find_python "$version")"
  sh tools/setup.sh "$version"
  if ".venv-$version/bin/pytest" -q -n 3 -m "not slow and not soak and not real" \
    --ignore-glob="*/test_node*" tests/sandbox tests/graders/test_function*.py tests/graders/testing
  then passed="$passed $version"; else failed="$failed $version"; fi
done
echo "Pythons other than $own: passed on:${passed:- none}; failed on:${failed:- none};" \
  "not on this machine:${missing:- none}"
[ -z "$failed" ]
