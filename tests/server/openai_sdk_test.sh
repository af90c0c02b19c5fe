#!/bin/bash
# openai_sdk_test.sh VENV ARGUMENT...: runs openai_sdk_test.py with these arguments and the public SDK.
# Exit code 77: the SDK cannot be installed.
set -u
here=$(dirname "$0")
python=$("$here/../python_env.sh" "$1" openai==3.57.0) || { rc=$?; echo "$python"; exit $rc; }
shift
exec "$python" "$here/openai_sdk_test.py" "$@"
