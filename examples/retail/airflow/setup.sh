#!/usr/bin/env bash
# Make .airflow/venv with the pinned versions; does nothing where it is up to date. PYTHON=... chooses the interpreter.
set -euo pipefail
cd "$(dirname "$0")"
venv=$(cd ../../.. && pwd)/.airflow/venv

# The place is part of the stamp: the programs in an environment that was moved do not start.
wanted="$venv $(cat requirements.txt constraints.txt | cksum)"
if [ -x "$venv/bin/airflow" ] && [ "$(cat "$venv/.installed" 2>/dev/null)" = "$wanted" ]; then exit 0; fi

# the interpreter of .venv, which scripts/setup.sh has chosen
python=$(cd ../../.. && .venv/bin/python -c 'import sys; print(sys._base_executable)')
echo "Installing Airflow into .airflow/venv, apart from dbt; a minute the first time."
"$python" -m venv --clear "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r requirements.txt -c constraints.txt
echo "$wanted" >"$venv/.installed"
