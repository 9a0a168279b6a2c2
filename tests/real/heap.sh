#!/bin/sh
# The tutorial of persistent objects (docs/nvheap.md) where simulated devices hold them: in the eNVy window, whose server is killed,
# and on a block device behind FUSE, whose server is killed after the program has ended. What it acknowledged is there
# afterwards. The block device needs root, for a loop device.
#
# usage: heap.sh NVLAB TODO     TODO: cargo build --example todo -p nvlab-nvheap
set -eu
nvlab=$(realpath "$1")
todo=$(realpath "$2")
folder=$(mktemp -d)
server='' loop=''
cleanup() {
    test -z "$loop" || losetup -d "$loop" 2>/dev/null || true
    test -z "$server" || kill -KILL "$server" 2>/dev/null || true
    umount "$folder/dev" 2>/dev/null || true
    rm -rf "$folder"
}
trap cleanup EXIT
say() { echo "heap.sh: $*"; }
count() { grep -c . "$folder/out"; }
# shellcheck disable=SC2016
in_window='TODO_HEAP=$NVLAB_WINDOW "$0"'

say "in the eNVy window"
for round in 1 2; do
    "$nvlab" serve envy --mem --state "$folder/window" --size 32MiB --resident 1MiB --time fast -- \
        sh -c "$in_window" "$todo" >"$folder/out" 2>>"$folder/err"
done
test "$(count)" = 7 # three tasks, then four
# The program acknowledges and goes on; its server is killed with it.
"$nvlab" serve envy --mem --state "$folder/window" --size 32MiB --resident 1MiB --time fast -- \
    sh -c "$in_window && sleep 60" "$todo" >"$folder/out" 2>>"$folder/err" &
server=$!
for _ in $(seq 200); do test "$(count || true)" = 11 && break; sleep 0.05; done # five tasks, then six
kill -KILL "$server"
wait "$server" 2>/dev/null || true
server=
sleep 0.5
"$nvlab" serve envy --mem --state "$folder/window" --size 32MiB --resident 1MiB --time fast -- \
    sh -c "$in_window" "$todo" >"$folder/out" 2>>"$folder/err"
grep -q 'recovered: nothing is lost' "$folder/err" || { cat "$folder/err"; say "FAILED: it was not killed"; exit 1; }
test "$(count)" = 15 || { cat "$folder/out"; say "FAILED: tasks are missing"; exit 1; }
say "ok: after a killed server every task is there"

command -v losetup >/dev/null && test "$(id -u)" = 0 || { say "no loop device: left out"; exit 0; }
say "on a block device"
begin() {
    "$nvlab" serve 'ssd-mlc-2010,media.mlc.blocks=64,ftl.spare=20%' --fuse "$folder/dev" --time fast \
        --state "$folder/state" 2>>"$folder/err" &
    server=$!
    for _ in $(seq 200); do test -n "$(find "$folder/dev" -type f 2>/dev/null)" && break; sleep 0.05; done
    loop=$(losetup --find --show "$(find "$folder/dev" -type f | head -1)")
}
finish() { # signal
    losetup -d "$loop"
    loop=
    kill "-$1" "$server"
    wait "$server" 2>/dev/null || true
    server=
    umount "$folder/dev" 2>/dev/null || true
}
begin
TODO_HEAP=$loop "$todo" >"$folder/out"
test "$(count)" = 3
finish KILL
begin
TODO_HEAP=$loop "$todo" >"$folder/out"
test "$(count)" = 7 || { cat "$folder/out"; say "FAILED: tasks are missing"; exit 1; }
finish TERM
say "ok: a volatile buffer lost nothing that msync acknowledged"
