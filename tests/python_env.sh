#!/bin/bash
# python_env.sh DIRECTORY PIP_ARGUMENT...: makes sure that the virtual environment in DIRECTORY has these packages and
# prints its interpreter. Test oracles only. If the package index is out of reach: a line with the reason and exit code 77,
# which CTest reads as skipped.
set -u
directory=$1
shift
mkdir -p "$directory"
exec 9>"$directory/.lock"
flock 9
stamp="$directory/.has-$(printf '%s\n' "$@" | sha256sum | cut -c1-16)"
if [ ! -f "$stamp" ]; then
    log="$directory/pip.log"
    if ! { python3 -m venv "$directory" && "$directory/bin/python" -m pip install --quiet "$@"; } >"$log" 2>&1; then
        echo "SKIP: cannot install $* (see $log)"
        exit 77
    fi
    touch "$stamp"
fi
echo "$directory/bin/python"
