#!/bin/sh
# What if the program ran on another device: SQLite commits on ext4, recorded in real time on three devices; from each
# recording the time spent waiting on the others is predicted, and held against what was recorded there. Then one recording
# under every design there is. Needs root.
#
# What the program computes differs from run to run on a busy machine, so that only the waiting is held to a bound.
#
# usage: whatif.sh NVLAB [COMMITS]
set -eu
nvlab=$(realpath "$1")
commits=${2:-100}
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
mkdir mnt

cat >load.sh <<'END'
set -eu
mkfs.ext4 -q -F -b 4096 -E lazy_itable_init=0,lazy_journal_init=0 "$NVLAB_DEV" 400m
loop=$(losetup --direct-io=on --show -f "$NVLAB_DEV")
trap 'umount -l mnt 2>/dev/null || true; losetup -d "$loop"' EXIT
mount "$loop" mnt
sqlite3 mnt/base.db 'pragma journal_mode=wal; create table t(i integer primary key, x blob);' >/dev/null
{ echo 'pragma synchronous=full;'; seq "$1" | sed 's/.*/insert into t values(&, randomblob(3000));/'; } | sqlite3 mnt/base.db
sync -f mnt
umount mnt
END

base='ssd-tlc,media.tlc.blocks=200,array.channels=1,ftl.spare=40%'
set -- "$base" "$base,power.on_cut=lose-buffer" "$base,power.on_cut=lose-buffer,media.tlc.program=4 ms"
number=0
for design; do
    number=$((number + 1))
    "$nvlab" serve "$design" --fuse dev --time real --record "$number.nvt" -- sh load.sh "$commits" 2>"$number.err" ||
        { cat "$number.err"; echo "FAILED: the program on $design"; exit 1; }
done

measure() { # design, recording, field of the result
    "$nvlab" run "$1" -w "$2.nvt think=keep" --precondition fresh --json 2>/dev/null | sed -n "s/.*\"$3\": \([0-9.e-]*\).*/\1/p"
}

echo 'whatif.sh: recorded on, run on: predicted run time and waiting, measured run time and waiting (s)'
from=0
for _ in "$@"; do
    from=$((from + 1)) to=0
    for design; do
        to=$((to + 1))
        test "$from" = "$to" && continue
        waiting=$(measure "$design" "$from" waiting_s) waited=$(measure "$design" "$to" recorded_waiting_s)
        echo "  $from, $to: $(measure "$design" "$from" simulated_s) $waiting, $(measure "$design" "$to" recorded_s) $waited"
        awk "BEGIN { exit !($waiting > 0.9 * $waited && $waiting < 1.1 * $waited) }" ||
            { echo "FAILED: the waiting is off by more than a tenth"; exit 1; }
    done
done

status=0
names=$(basename -s .toml "$here"/../../designs/*.toml)
# shellcheck disable=SC2086
"$nvlab" compare "$base" $names -w '2.nvt think=keep compact clip-trims' --precondition fresh \
    -m program.time,program.waiting,program.computing,waf,lifetime 2>err || status=$?
grep 'left out' err || true
# 3: some designs are too small, and are named.
test "$status" = 0 || test "$status" = 3
echo "whatif.sh: ok"
