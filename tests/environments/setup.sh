#!/usr/bin/env bash
# setup.sh NAME: make .environments/NAME with the packages of NAME.txt; does nothing where it is up to date.
# What is not found there is found in .venv, so NAME.txt lists all that is not, and pip looks for no dependencies.
# Where NAME.txt has the line "# alone", nothing is shared.
set -euo pipefail
cd "$(dirname "$0")/../.."

packages="tests/environments/$1.txt"
home=".environments/$1"
# The place is part of the stamp: the programs in an environment that was moved do not start.
wanted="$(pwd) $(cat "$packages" constraints.txt | cksum)"
if [ -x "$home/bin/python" ] && [ "$(cat "$home/.installed" 2>/dev/null)" = "$wanted" ]; then exit 0; fi

# the interpreter of .venv, which scripts/setup.sh has chosen
python=$(.venv/bin/python -c 'import sys; print(sys._base_executable)')
echo "Installing the packages of $packages into $home; up to a minute the first time."
"$python" -m venv --clear "$home"
if grep -qx "# alone" "$packages"; then
    "$home/bin/python" -m pip install --quiet --disable-pip-version-check -r "$packages"
else
    "$home/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps -r "$packages"
    own=$("$home/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    below=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    echo "import site; site.addsitedir('$below')" >"$own/venv_below.pth"
fi
echo "$wanted" >"$home/.installed"
