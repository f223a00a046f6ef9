#!/bin/sh
# Run the tests of what depends most on the interpreter (sandbox, functions, hidden tests and their
# boundary) on the oldest and the newest Python that the classifiers promise and this machine has,
# but for the one of .venv, which runs them all. What is new in one between them is in the newest,
# too; what is gone from the newest was there in the oldest. Not of them: Node, reports of runners as
# text, and what the kernel or bubblewrap does, whichever Python asks for it.
set -eu
cd "$(dirname "$0")/.."
. tools/python.sh

sh tools/setup.sh
own=$(.venv/bin/python -c 'import sys; print("%d.%d" % sys.version_info[:2])')
here="" passed="" failed="" missing=""
for version in $(sed -n 's/.*Programming Language :: Python :: \(3\.[0-9]*\).*/\1/p' pyproject.toml); do
  if find_python "$version" >/dev/null; then here="$here $version"; else missing="$missing $version"; fi
done
# Below tests, so that the shell finds no file of these names where it stands.
elsewhere="testing/test_node* testing/test_authors* testing/test_com* testing/test_console* testing/test_junit*
  testing/test_shared_files* testing/test_weights* sandbox/test_door* sandbox/test_function_filter*
  sandbox/test_images* sandbox/test_probe* sandbox/test_seccomp*"
ends() { [ $# = 0 ] || { oldest=$1; shift $(($# - 1)); printf '%s\n' "$oldest" "$1" | uniq; }; }
for version in $(ends $here); do
  [ "$version" != "$own" ] || continue
  echo "Python $version: $(find_python "$version")"
  sh tools/setup.sh "$version"
  if ".venv-$version/bin/pytest" -q -n 3 -m "versions or not slow and not soak and not real" \
    $(printf -- '--ignore-glob=*/%s ' $elsewhere) tests/sandbox tests/graders/test_function*.py tests/graders/testing
  then passed="$passed $version"; else failed="$failed $version"; fi
done
echo "Pythons other than $own: passed on:${passed:- none}; failed on:${failed:- none};" \
  "not on this machine:${missing:- none}"
[ -z "$failed" ]
