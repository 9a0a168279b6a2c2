#!/usr/bin/env bash
# Makes a wheel of the Python package in target/wheels and prints its path. It carries the command and needs no Rust.
set -euo pipefail
cd "$(dirname "$0")/.."
tools=target/python-build
if [ ! -x "$tools/bin/maturin" ]; then
    python3 -m venv "$tools"
    "$tools/bin/pip" install --quiet --disable-pip-version-check 'maturin>=1.9,<2' >&2
fi
"$tools/bin/maturin" build --release --locked --quiet --out target/wheels >&2
ls -t "$PWD"/target/wheels/nvlab-*.whl | head -1
