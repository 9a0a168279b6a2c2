#!/bin/sh
# Real tools on FAT12, FAT16 and FAT32 volumes that a simulated device with FSMS holds: mkfs.vfat, mtools, fsck.vfat
# (apt: dosfstools, mtools). Files must come back byte for byte, also after a power cut behind every tool, and
# fsck.vfat must find nothing.
#
# usage: tests/real/fat.sh [NVLAB]     NVLAB: the program, default nvlab
set -eu
nvlab=$(command -v "${1:-nvlab}")
nvlab=$(realpath "$nvlab")
PATH=$PATH:/sbin:/usr/sbin
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export MTOOLS_SKIP_CHECK=1
mkdir files
i=0
while [ $i -lt 12 ]; do
    head -c $((i * 3001 + 17)) /dev/urandom > "files/file $i.bin"
    i=$((i + 1))
done
head -c 300000 /dev/urandom > files/large.bin

volume() { # DESIGN KIND SIZE CLUSTER-SECTORS CUT
    design=$1 kind=$2 size=$3 cluster=$4 cut=$5
    rm -f vol.img
    # shellcheck disable=SC2016
    $nvlab image "$design" vol.img --size "$size" $cut --set ftl.capacity=128MiB \
        "mkfs.vfat -F $kind -s $cluster \$NVLAB_IMAGE > /dev/null" \
        'mmd -i $NVLAB_IMAGE ::/one ::/one/two ::/three' \
        'mcopy -i $NVLAB_IMAGE files/*.bin ::/one' \
        'mcopy -i $NVLAB_IMAGE files/*.bin ::/one/two' \
        'mdel -i $NVLAB_IMAGE "::/one/file 3.bin" ::/one/large.bin' \
        'mcopy -i $NVLAB_IMAGE files/large.bin ::/three/again.bin' \
        'mren -i $NVLAB_IMAGE "::/one/file 4.bin" "::/one/a much longer name than before.bin"' \
        'mrd -i $NVLAB_IMAGE ::/one/two/none 2> /dev/null || true' \
        'mdeltree -i $NVLAB_IMAGE ::/one/two' \
        'mmd -i $NVLAB_IMAGE ::/one/two' \
        'mcopy -i $NVLAB_IMAGE files/*.bin ::/one/two' \
        'fsck.vfat -n $NVLAB_IMAGE > /dev/null' | tail -2
    fsck.vfat -n vol.img > fsck.out || { cat fsck.out; exit 1; }
    rm -rf back && mkdir back
    mcopy -s -n -i vol.img ::/one/two back
    for file in files/*; do cmp "$file" "back/two/$(basename "$file")"; done
    mcopy -n -i vol.img ::/three/again.bin back/again.bin
    cmp files/large.bin back/again.bin
    echo "$design, FAT$kind $cut: files compared, fsck.vfat clean"
}

for design in hftl-fsms lbftl-fsms; do
    volume $design 12 4MiB 4 ""
    volume $design 16 32MiB 4 ""
    volume $design 32 64MiB 1 ""
done
volume hftl-fsms 12 4MiB 4 --cut
volume hftl-fsms 16 32MiB 4 --cut
volume hftl-fsms 32 64MiB 1 --cut
echo "all volumes are as they should be"
