#!/usr/bin/env bash
# Make .iceberg, an environment on top of .venv with the Spark that Iceberg supports; does nothing where it is up to date.
set -euo pipefail
cd "$(dirname "$0")/../.."

# The place is part of the stamp: the programs in an environment that was moved do not start.
wanted="$(pwd) $(cat tests/iceberg/requirements.txt constraints.txt | cksum)"
if [ -x .iceberg/bin/python ] && [ "$(cat .iceberg/.installed 2>/dev/null)" = "$wanted" ]; then exit 0; fi

# the interpreter of .venv, which scripts/setup.sh has chosen
python=$(.venv/bin/python -c 'import sys; print(sys._base_executable)')
echo "Installing the Spark of the Iceberg tests into .iceberg; half a minute the first time."
"$python" -m venv --clear .iceberg
.iceberg/bin/python -m pip install --quiet --disable-pip-version-check -r tests/iceberg/requirements.txt
# what is not found in .iceberg is found in .venv
own=$(.iceberg/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
below=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
echo "import site; site.addsitedir('$below')" >"$own/venv_below.pth"
echo "$wanted" >.iceberg/.installed
