#!/bin/sh
# Installs what the scripts beside it need, where apt-get and root are there.
set -eu
missing=
for program in fio nbdinfo nbdcopy nbdkit qemu-img qemu-io mkfs.ext4 mkfs.xfs mkfs.btrfs mkfs.vfat mcopy sqlite3 git openssl; do
    command -v "$program" >/dev/null || missing="$missing $program"
done
# Only for nvme.sh, which says so if it cannot run.
for program in qemu-system-x86_64 nvme cpio busybox; do
    command -v "$program" >/dev/null || guest=missing
done
test -z "${guest:-}" || apt-get install -y qemu-system-x86 busybox-static nvme-cli cpio kmod >/dev/null ||
    echo "install.sh: nvme.sh will be skipped"
test -z "$missing" && exit 0
echo "missing:$missing; installing"
apt-get install -y fio libnbd-bin nbdkit qemu-utils e2fsprogs xfsprogs btrfs-progs dosfstools mtools sqlite3 git openssl >/dev/null
