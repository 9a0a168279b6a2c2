#!/bin/sh
# What serving costs and how well it keeps time, with fio as the client.
#
# 1. CPU time of the server for each request, against `nbdkit -t 1 memory` in the same run: both in turn, several rounds,
#    least and median. The design keeps its media in memory and is the one that measures nvlab itself. Beside them the floor
#    (floor.c): the least a server of this protocol does that keeps what it is given; and the same with a checksum of what is
#    written. Once with client and server on one core, where the figure is what the server does; once on all, where much of it
#    is waking the other core. 1 MiB is read twice: as random writes of 4 KiB left it, in 256 places, and as it was written, in
#    order.
# 2. Held answers (--time real): a device of 100 us at queue depth 1, one of 1 ms at depth 32, against the model.
#
# usage: cost.sh NVLAB [ROUNDS]
set -eu
nvlab=$1
rounds=${2:-5}
design=bench-4g,media.nand.blocks=512,ftl.spare=20%
slow100us='bench-4g,media.nand.blocks=512,media.nand.read=90 us'
slow1ms='bench-16g-8x4,media.nand.blocks=32,ftl.spare=40%,path.kind=nvme,path.rate=3.5 GB/s,path.overhead.host=1 ms'
size=128m
folder=$(mktemp -d)
servers=
# shellcheck disable=SC2154
trap 'for server in $servers; do kill "$server" 2>/dev/null || true; done; rm -rf "$folder"' EXIT
export NVLAB_NO_PROGRESS=1
cc -O2 -msse4.2 -o "$folder/floor" "$(dirname "$0")/floor.c"

# Thousandths of a tick are not to be had: a row takes half a second of CPU time and more.
ticks() { awk '{ print $14 + $15 }' "/proc/$1/stat"; }

# On which cores, as a prefix of commands; empty: all.
on=

client() { # name, pattern, block size, depth, bytes
    $on fio --name=x --ioengine=nbd --uri="nbd+unix:///?socket=$folder/$1.sock" --rw="$2" --bs="$3" --iodepth="$4" \
        --size=$size --io_size="$5" --minimal --terse-version=3
}

wait_for() { # name
    for _ in $(seq 200); do test -S "$folder/$1.sock" && return; sleep 0.05; done
    echo "FAILED: no server at $1"; exit 1
}

measure() { # row, name, process, then as client; MiB
    before=$(ticks "$3")
    client "$2" "$4" "$5" "$6" "$7m" >/dev/null
    echo "$1 $2 $(($(ticks "$3") - before)) $(($7 * 1024 / ${5%k}))" >>"$folder/rows"
}

table() { # heading
    $on nbdkit -f -t 1 -U "$folder/nbdkit.sock" memory 128M &
    nbdkit=$!
    $on "$folder/floor" "$folder/floor.sock" 134217728 &
    floor=$!
    $on "$folder/floor" "$folder/sums.sock" 134217728 sums &
    sums=$!
    $on "$nvlab" serve "$design" --nbd "$folder/nvlab.sock" --time fast 2>/dev/null &
    ours=$!
    servers="$nbdkit $floor $sums $ours"
    wait_for nbdkit
    wait_for floor
    wait_for sums
    wait_for nvlab
    # Nothing is touched for the first time while it is measured: a log goes through all of the array.
    client nbdkit write 1024k 4 896m >/dev/null
    client nvlab write 1024k 4 896m >/dev/null
    : >"$folder/rows"
    for _ in $(seq "$rounds"); do
        for row in '4k-read-qd1 randread 4k 1 256' '4k-write-qd1 randwrite 4k 1 256' \
            '4k-read-qd32 randread 4k 32 512' '4k-write-qd32 randwrite 4k 32 512' \
            '1m-read-scattered read 1024k 4 2048' '1m-write write 1024k 4 2048' '1m-read read 1024k 4 2048'; do
            # shellcheck disable=SC2086
            set -- "$1" $row
            measure "$2" nbdkit "$nbdkit" "$3" "$4" "$5" "$6"
            measure "$2" floor "$floor" "$3" "$4" "$5" "$6"
            measure "$2" sums "$sums" "$3" "$4" "$5" "$6"
            measure "$2" nvlab "$ours" "$3" "$4" "$5" "$6"
        done
    done
    # shellcheck disable=SC2086
    kill $servers
    # shellcheck disable=SC2086
    wait $servers 2>/dev/null || true
    rm -f "$folder"/*.sock
    servers=
    sort -s -k1,2 "$folder/rows" | awk -v hz="$(getconf CLK_TCK)" -v heading="$1" '
        { key = $1 " " $2; at[key]++; us[key, at[key]] = $3 * 1e6 / hz / $4; rows[$1] = 1 }
        function order(key, count,    i, j, x) {
            count = at[key]
            for (i = 1; i <= count; i++)
                for (j = i + 1; j <= count; j++)
                    if (us[key, j] < us[key, i]) { x = us[key, i]; us[key, i] = us[key, j]; us[key, j] = x }
            least[key] = us[key, 1]; median[key] = us[key, int((count + 1) / 2)]
        }
        END {
            print "us of CPU time for a request: least, median; client and server " heading
            for (row in rows) {
                ours = row " nvlab"; theirs = row " nbdkit"
                floor = row " floor"; sums = row " sums"
                order(ours); order(theirs); order(floor); order(sums)
                share = median[ours] / median[theirs]
                printf "%-18s nvlab %7.2f %7.2f   nbdkit %7.2f %7.2f   floor %7.2f, with sums %7.2f   of nbdkit: floor %.2f %.2f, nvlab %.2f: %s\n",
                    row, least[ours], median[ours], least[theirs], median[theirs], median[floor], median[sums],
                    median[floor] / median[theirs], median[sums] / median[theirs], share, share <= 0.8 ? "ok" : "ABOVE .8" | "sort"
            }
        }'
}

on='taskset -c 0'
table 'on one core'
on=
table 'on all cores'

size=32m
held() { # design, depth, requests of 4 KiB: p50 and mean of the model, p50 at the client (us), IOPS, depth
    rm -f "$folder/nvlab.sock"
    "$nvlab" serve "$1" --nbd "$folder/nvlab.sock" --time real --json 2>"$folder/report" &
    ours=$!
    servers=$ours
    wait_for nvlab
    client nvlab write 1024k 4 $size >/dev/null
    client nvlab randread 4k "$2" "$(($3 * 4))k" | grep '^3;' >"$folder/fio"
    kill -TERM "$ours"
    wait "$ours"
    servers=
    model=$(python3 -c '
import json, sys
for line in open(sys.argv[1]):
    if line.startswith("{"):
        latency = json.loads(line)["devices"][0]["read"]["latency"]
        print(latency["p50_ns"] / 1000, latency["mean_ns"] / 1000)' "$folder/report")
    p50=$(grep -o '50.000000%=[0-9]*' "$folder/fio" | head -1 | cut -d= -f2)
    iops=$(cut -d';' -f8 "$folder/fio")
    echo "$model $p50 $iops $2"
}

held "$slow100us" 1 10000 | awk '{ printf "a device of %.1f us, depth 1: p50 %d us at the client, %.1f us more: %s\n",
    $1, $3, $3 - $1, ($3 - $1 <= 60 ? "ok" : "ABOVE 60") }'
held "$slow1ms" 32 200000 | awk '{ ideal = $5 / $2 * 1e6; printf "a device of %.1f us, depth %d: %d IOPS, %.0f %% of %d: %s\n",
    $2, $5, $4, 100 * $4 / ideal, ideal, ($4 >= 0.7 * ideal ? "ok" : "BELOW 70 %") }'
