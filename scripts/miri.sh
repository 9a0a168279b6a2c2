#!/usr/bin/env bash
# Runs what miri can run of the persistent objects: it checks every access to memory against Rust's rules, and threads for races.
# A nightly compiler with miri is installed if there is none. Each test takes up to a minute.
set -euo pipefail
cd "$(dirname "$0")/.."
if ! cargo +nightly miri --version >/dev/null 2>&1; then
    rustup toolchain install nightly --profile minimal
    rustup component add --toolchain nightly miri rust-src
fi
# Files are real. Addresses are made of integers nowhere.
export MIRIFLAGS="-Zmiri-disable-isolation -Zmiri-strict-provenance ${MIRIFLAGS:-}"
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/miri
cargo +nightly miri test --locked -p nvlab-nvheap --test miri -- --report-time -Zunstable-options "$@"
