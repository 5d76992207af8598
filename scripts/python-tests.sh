#!/usr/bin/env bash
# Run the trainers' tests with the default Python and with each version named, each in a virtual environment of its own.
# A version is looked for as pythonX.Y on PATH and below ~/.pyenv/versions; with CI=true a missing one is a failure.
set -euo pipefail
cd "$(dirname "$0")/.."

find_python() {
  if command -v "python$1" >/dev/null && "python$1" -c '' 2>/dev/null; then
    command -v "python$1"
  else
    ls -d "$HOME"/.pyenv/versions/"$1".*/bin/python 2>/dev/null | tail -n 1
  fi
}

run_tests() {
  echo "== trainers' tests with $("$1" --version)"
  "$1" -m pytest -q -p no:cacheprovider trainers/tests
}

run_tests .venv/bin/python
for version in "$@"; do
  venv=.venv-$version
  if [ ! -x "$venv/bin/pytest" ]; then
    python=$(find_python "$version")
    if [ -z "$python" ]; then
      echo "Python $version is not on this machine (looked for python$version and ~/.pyenv/versions/$version.*)" >&2
      [ "${CI:-}" != true ] || exit 1
      continue
    fi
    "$python" -m venv "$venv"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r trainers/requirements-test.txt
  fi
  run_tests "$venv/bin/python"
done
