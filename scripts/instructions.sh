#!/usr/bin/env bash
# Instructions per simulated 4 KiB write (and read), counted by callgrind: the difference between a run of 2 N and
# one of N requests, so that preconditioning and start-up cancel out. Repeatable on any machine, loaded or not.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v valgrind >/dev/null || { echo "instructions.sh: valgrind is not installed; nothing counted" >&2; exit 0; }
nvlab=${NVLAB:-target/release/nvlab}
count() { # design operation requests
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$nvlab" bench "$1" --only "$2" --requests "$3" \
        2>&1 >/dev/null | sed -n 's/.*Collected : //p'
}
n=500000
for design in bench-4g bench-4g-8x4; do
    for operation in write read; do
        once=$(count "$design" "$operation" $n)
        twice=$(count "$design" "$operation" $((2 * n)))
        # Reads are measured at two depths: each counts.
        kinds=1; if [ "$operation" = read ]; then kinds=2; fi
        echo "$design $operation: $(((twice - once) / n / kinds)) instructions per request"
    done
done
