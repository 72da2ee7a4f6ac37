#!/usr/bin/env bash
# setup.sh: make .venv with the pinned versions, for the tests; setup.sh demo: with what the examples run on, and no more.
# Does nothing where it is up to date. PYTHON=... chooses the interpreter.
set -euo pipefail
cd "$(dirname "$0")/.."

java_version() {
    local java=java
    if [ -n "${JAVA_HOME:-}" ]; then java="$JAVA_HOME/bin/java"; fi
    # openjdk version "17.0.15" 2025-04-15: the first number; 1 for the old 1.8
    "$java" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p' | head -n 1
}

is_suitable() {
    "$1" -c 'import sys, ensurepip, venv; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))' >/dev/null 2>&1
}

found=$(java_version || true)
if [ "${found:-0}" -lt 17 ]; then
    {
        if [ -n "$found" ]; then echo "Spark needs Java 17 or newer; this machine has Java $found."
        else echo "Spark needs Java 17 or newer; this machine has none."; fi
        echo "  Debian, Ubuntu   sudo apt-get install openjdk-17-jre-headless"
        echo "  Fedora           sudo dnf install java-21-openjdk-headless"
        echo "  macOS            brew install openjdk@17"
        echo "If it is installed elsewhere, set JAVA_HOME."
    } >&2
    exit 1
fi

# The place is part of the stamp: the programs in a .venv that was moved do not start.
stamp=.venv/.installed
examples="$(pwd) $(cat requirements.txt constraints.txt pyproject.toml | cksum)"
tests="$examples $(cksum <requirements-tests.txt)"
installed=
if [ -x .venv/bin/python ]; then installed=$(cat "$stamp" 2>/dev/null || true); fi
if [ "$installed" = "$tests" ] || [ "$installed $*" = "$examples demo" ]; then exit 0; fi

# Python compiles the modules that are used, when they are used; pip would compile all of them.
install() { .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-compile "$@"; }

install_tests() {
    echo "Installing what the tests need into .venv; a minute the first time."
    install -r requirements-tests.txt -c constraints.txt
    echo "$tests" >"$stamp"
}
if [ "$installed" = "$examples" ]; then install_tests; exit 0; fi

python=
for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11 python3.10}; do
    if is_suitable "$candidate"; then python=$candidate; break; fi
done
if [ -z "$python" ]; then
    echo "No Python 3.10 to 3.13 with venv among: ${PYTHON:-python3, python3.10 to python3.13}." >&2
    echo "Install one (Debian, Ubuntu: sudo apt-get install python3-venv), or name it: make demo PYTHON=/path/to/python3.12" >&2
    exit 1
fi

echo "Installing the pinned versions into .venv with $("$python" --version); a few minutes the first time."
"$python" -m venv --clear .venv
install -r requirements.txt -c constraints.txt
# Editable, and built with the pinned hatchling; what it depends on is there already.
install --no-build-isolation --no-deps -e .
echo "$examples" >"$stamp"
if [ "${1:-}" != demo ]; then install_tests; fi
