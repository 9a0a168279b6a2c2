#!/bin/sh
# The power fails under SQLite on ext4, many times: nothing acknowledged is lost. On a device that ignores FLUSH something is;
# that is found, by the device's own promise and by the program, and what is saved fails again. Needs root.
#
# usage: cuts.sh NVLAB [CUTS]
set -eu
nvlab=$(realpath "$1")
cuts=${2:-200}
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
design='ssd-mlc-2010,media.mlc.blocks=64,ftl.spare=20%,ftl.buffer.size=4MiB'
checks='--check fs=ext4 --check program'

fails() { # says why if the command ends with anything but 1
    status=0
    "$@" 2>err || status=$?
    test "$status" = 1 && return
    cat err
    echo "FAILED: a loss was to be found, the status was $status"
    exit 1
}

# shellcheck disable=SC2086
"$nvlab" cut "$design" $checks --cuts "$cuts" -- "$here/commits.sh"
# shellcheck disable=SC2086
fails "$nvlab" cut "$design" $checks --cuts 40 --ignore-flush --save lost.nvcut -- "$here/commits.sh"
cat err
fails "$nvlab" cut "$design" --replay lost.nvcut
# Memories used in place, and the RAM disk that stands for one: nothing is buffered but in optane-like.
for design in moneta,media.pcm.size=256MiB ddr-scm,media.pcm.size=256MiB optane-like,media.xpoint.size=256MiB \
    nvramdisk,media.dram.size=256MiB; do
    # shellcheck disable=SC2086
    "$nvlab" cut "$design" $checks --cuts $((cuts / 4)) -- "$here/commits.sh"
done
for kind in xfs btrfs; do
    command -v "mkfs.$kind" >/dev/null || { echo "cuts.sh: no mkfs.$kind: left out"; continue; }
    "$nvlab" cut 'ssd-mlc-2010,media.mlc.blocks=256,ftl.spare=20%' --check "fs=$kind" --check program \
        --cuts $((cuts / 4)) -- "$here/commits.sh"
done
echo "cuts.sh: ok"
