#!/bin/sh
# CPU time of the server for each request, against `nbdkit -t 1 memory` in the same run, with fio as the client.
#
# usage: cost.sh NVLAB [DESIGN]
set -eu
nvlab=$1
design=${2:-ssd-mlc-2010,media.mlc.blocks=256,ftl.spare=20%}
folder=$(mktemp -d)
server=
trap 'test -z "$server" || kill "$server" 2>/dev/null || true; rm -rf "$folder"' EXIT
size=128m

ticks() { awk '{ print $14 + $15 }' "/proc/$1/stat"; }

measure() { # name, pattern, block size, depth, requests
    uri="nbd+unix:///?socket=$folder/$1.sock"
    before=$(ticks "$server")
    fio --name=x --ioengine=nbd --uri="$uri" --rw="$2" --bs="$3" --iodepth="$4" --size=$size --io_size="$5" \
        --minimal >/dev/null
    after=$(ticks "$server")
    count=$(($(echo "$5" | sed 's/m$//') * 1048576 / $(echo "$3" | sed 's/k$//') / 1024))
    awk -v n="$1" -v p="$2" -v b="$3" -v d="$4" -v t=$((after - before)) -v c="$count" -v hz="$(getconf CLK_TCK)" \
        'BEGIN { printf "%-8s %-10s bs=%-6s qd=%-3s %8.2f us\n", n, p, b, d, t * 1e6 / hz / c }'
}

rows() {
    # Filled once, so that nothing is touched for the first time while it is measured.
    fio --name=fill --ioengine=nbd --uri="nbd+unix:///?socket=$folder/$1.sock" --rw=write --bs=1m --size=$size \
        --minimal >/dev/null
    for depth in 1 32; do
        measure "$1" randread 4k $depth 512m
        measure "$1" randwrite 4k $depth 512m
    done
    measure "$1" read 1024k 4 4096m
    measure "$1" write 1024k 4 4096m
}

nbdkit -f -t 1 -U "$folder/nbdkit.sock" memory 128M &
server=$!
sleep 0.5
rows nbdkit
kill "$server"; wait "$server" 2>/dev/null || true
"$nvlab" serve "$design" --nbd "$folder/nvlab.sock" --time fast 2>/dev/null &
server=$!
sleep 1
rows nvlab
