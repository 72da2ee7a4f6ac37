#!/usr/bin/env bash
# setup.sh NAME: make .environments/NAME with the packages of NAME.txt; does nothing where it is up to date.
# What is not found there is found in .venv, so NAME.txt lists all that is not, and pip looks for no dependencies.
# Where NAME.txt has the line "# alone", nothing is shared; "# python 3.10" names the interpreter. NAME.apt: packages of Debian that are needed too.
set -euo pipefail
cd "$(dirname "$0")/../.."

for package in $(cat "tests/environments/$1.apt" 2>/dev/null); do
    dpkg -s "$package" >/dev/null 2>&1 || { apt-get update -q && apt-get install -q -y "$package"; }
done

packages="tests/environments/$1.txt"
home=".environments/$1"
# The place is part of the stamp: the programs in an environment that was moved do not start.
wanted="$(pwd) $(cat "$packages" constraints.txt | cksum)"
if [ -x "$home/bin/python" ] && [ "$(cat "$home/.installed" 2>/dev/null)" = "$wanted" ]; then exit 0; fi

version=$(sed -n 's/^# python //p' "$packages")
python=
if [ -z "$version" ]; then # the interpreter of .venv, which scripts/setup.sh has chosen
    python=$(.venv/bin/python -c 'import sys; print(sys._base_executable)')
else
    for candidate in "python$version" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$version".*/bin/python; do
        if "$candidate" -c 'import venv, ensurepip' >/dev/null 2>&1; then python=$candidate; fi
    done
    if [ -z "$python" ]; then echo "$packages needs Python $version with venv, which is not installed." >&2; exit 3; fi # NOT_INSTALLED in scripts/matrix.py
fi
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
