#!/bin/sh
# The power fails under SQLite on ext4, many times: nothing acknowledged is lost. On a device that ignores FLUSH something is,
# and that is found. Needs root.
#
# usage: cuts.sh NVLAB [CUTS]
set -eu
nvlab=$1
cuts=${2:-200}
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
design='ssd-mlc-2010,media.mlc.blocks=64,ftl.spare=20%,ftl.buffer.size=4MiB'

"$nvlab" cut "$design" --fuse "$folder/dev" --cuts "$cuts" -- "$here/commits.sh"
if "$nvlab" cut "$design" --fuse "$folder/dev" --cuts 40 --ignore-flush -- "$here/commits.sh" 2>"$folder/err"; then
    cat "$folder/err"
    echo "FAILED: a device that ignores FLUSH was not found out"
    exit 1
fi
tail -1 "$folder/err"
echo "cuts.sh: ok"
