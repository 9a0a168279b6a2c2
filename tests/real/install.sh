#!/bin/sh
# Installs what the scripts beside it need, where apt-get and root are there.
set -eu
missing=
for program in fio nbdinfo nbdcopy nbdkit qemu-img qemu-io mkfs.ext4 mkfs.xfs mkfs.btrfs mkfs.vfat mcopy sqlite3 git openssl; do
    command -v "$program" >/dev/null || missing="$missing $program"
done
test -z "$missing" && exit 0
echo "missing:$missing; installing"
apt-get install -y fio libnbd-bin nbdkit qemu-utils e2fsprogs xfsprogs btrfs-progs dosfstools mtools sqlite3 git openssl >/dev/null
