#!/bin/sh
# Everything here that shows a served device to programs nobody wrote for it; stops at the first that fails.
#
# usage: all.sh NVLAB
set -eu
here=$(cd "$(dirname "$0")" && pwd)
nvlab=$(realpath "$1")
"$here/install.sh"
"$here/heap.sh" "$nvlab" "$(dirname "$nvlab")/examples/todo"
for script in fat nbd filesystems cuts whatif cost; do
    "$here/$script.sh" "$nvlab"
done
"$here/nvme.sh" "$nvlab"
"$here/fio-examples.sh" "$nvlab"
"$here/fio-pace.sh" "$nvlab"
