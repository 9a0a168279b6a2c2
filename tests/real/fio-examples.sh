#!/bin/sh
# fio's own example job files on a simulated drive: how many of them run. They are those of Debian's package fio-examples, which
# is downloaded and unpacked, not installed; or those in the folder $NVLAB_FIO_EXAMPLES. Without either it is skipped.
# A job that needs what nvlab does not do is refused by name and counts as refused: left out, it would be another load.
# usage: tests/real/fio-examples.sh [NVLAB]; fails if fewer than 84 % run or are refused by name, or fewer than 60 % run.
set -eu

nvlab=$(realpath "${1:-target/release/nvlab}")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

examples=${NVLAB_FIO_EXAMPLES:-}
if [ -z "$examples" ]; then
    (cd "$dir" && apt-get download fio-examples >/dev/null 2>&1 && dpkg -x fio-examples_*.deb .) || {
        echo "skipped: no package fio-examples"
        exit 0
    }
    examples=$dir
fi

# What the examples take from the environment.
export FIO_RW=randread FIO_BS=4k FIO_IODEPTH=4 FIO_DIR=/tmp POOL=pool GPU_DEV_IDS=0 unixsocket=/tmp/nbd

all=0
ran=0
refused=0
run() {
    "$nvlab" run ssd-qlc -w "$@" --precondition fresh --out "$dir/runs" >"$dir/out" 2>&1
}
for job in $(find "$examples" -name '*.fio' | sort); do
    all=$((all + 1))
    # Some end before 2000 requests.
    if run "$job" --until 2000io || { grep -q 'the workload ended after' "$dir/out" && run "$job"; }; then
        ran=$((ran + 1))
    else
        grep -q 'is not supported' "$dir/out" && refused=$((refused + 1))
        echo "did not run: $(basename "$job"): $(grep -m 1 error "$dir/out")"
    fi
done
echo "$ran of $all example files ran, $refused were refused by name"
[ "$all" -gt 0 ] && [ $(((ran + refused) * 100)) -ge $((all * 84)) ] && [ $((ran * 100)) -ge $((all * 60)) ]
