#!/bin/bash
# A served drive as an unmodified Linux sees it over NVMe/TCP, in a guest (guest.sh): nvme-cli's discover, connect, identify,
# logs and features; ext4, xfs and btrfs with checksums and fsck; fio with verification, with and without digests; a power cut and
# a killed server under load, after each of which nothing that was synchronised is missing. Takes some minutes.
#
# usage: nvme.sh NVLAB. Skipped, with a reason, where guest.sh finds something missing.
set -euo pipefail

nvlab=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
kernel=${NVLAB_GUEST:-${TMPDIR:-/tmp}/nvlab-guest}
port=${NVLAB_NVME_PORT:-4421}
folder=$(mktemp -d)
server= guest=
cleanup() {
    test -z "$guest" || kill "$guest" 2>/dev/null || true
    test -z "$server" || kill "$server" 2>/dev/null || true
    rm -rf "$folder"
}
trap cleanup EXIT
export NVLAB_NO_PROGRESS=1 PROGRAMS="fio mkfs.ext4 e2fsck mkfs.xfs xfs_repair mkfs.btrfs btrfs" MODULES="xfs btrfs"

say() { echo "nvme.sh: $*"; }
fail() {
    say "FAILED: $*"
    tail -n 60 "$folder/console" "$folder/err" 2>/dev/null || true
    exit 1
}

# 2 GiB of ssd-tlc, of cells that last for 20 erases.
design='ssd-tlc,media.tlc.blocks=50,array.channels=1,ftl.spare=40%,media.tlc.endurance=20'
serve() {
    : >"$folder/err"
    "$nvlab" serve "$design" --nvme "127.0.0.1:$port" --time fast --state "$folder/state" 2>"$folder/err" &
    server=$!
    for _ in $(seq 200); do
        grep -q '^nvme ' "$folder/err" && return
        kill -0 "$server" 2>/dev/null || break
        sleep 0.05
    done
    fail "no server"
}

cat >"$folder/script" <<'SCRIPT'
set -e
say() { echo "guest: $*"; }
trap 'say failed in line $LINENO' EXIT
fabric="-t tcp -a 10.0.2.2 -s PORT"

# The host answers a message by what it does, the guest goes on when the controller is there again.
connect() { nvme connect $fabric -n "$nqn" -i 2 "$@" >/dev/null; device; }
device() {
    for _ in $(seq 300); do
        disk=$(ls /dev | grep -E '^nvme[0-9]+n1$' | head -1)
        if test -n "$disk" && test -b /dev/$disk && test "$(cat /sys/block/$disk/size)" -gt 0; then
            disk=/dev/$disk; controller=/dev/$(ls /sys/class/nvme | head -1); return
        fi
        sleep 0.2
    done
    say "no device"; dmesg | tail -20; return 1
}
disconnect() { nvme disconnect -n "$nqn" >/dev/null; for _ in $(seq 50); do test -e "$disk" || return 0; sleep 0.1; done; }

say discover
nvme discover $fabric >/tmp/discovery
nqn=$(awk '/^subnqn: .*nvlab/{print $2; exit}' /tmp/discovery)
test -n "$nqn" || { cat /tmp/discovery; false; }

say connect, identify, logs, features: $nqn
connect
nvme list
nvme id-ctrl $controller >/tmp/ctrl && grep -E '^(mn|fr|mdts|ver|oncs|vwc|subnqn) ' /tmp/ctrl
nvme id-ns $disk >/tmp/ns && grep -E '^(nsze|nlbaf|npwg|dlfeat|lbaf)' /tmp/ns
nvme ns-descs $disk >/dev/null
nvme list-ns $controller | grep -q '0x1'
nvme cmdset-ind-id-ns $controller -n 1 >/dev/null
nvme nvm-id-ctrl $controller >/dev/null
nvme list-ctrl $controller >/dev/null
nvme get-property $controller -o 0x1c >/dev/null
nvme error-log $controller -e 2 >/dev/null
nvme fw-log $controller >/dev/null
nvme get-log $controller -i 5 -l 4096 >/dev/null
nvme changed-ns-list-log $controller >/dev/null
nvme supported-log-pages $controller >/dev/null
for feature in 2 4 6 7 0xb 0xf; do nvme get-feature $controller -f $feature >/dev/null; done
nvme set-feature $controller -f 6 -v 0 >/dev/null
nvme get-feature $controller -f 6 | grep -q 'value:0*x*00000000'
nvme set-feature $controller -f 6 -v 1 >/dev/null
nvme smart-log $controller

say commands
head -c 1048576 /dev/urandom >/tmp/a
nvme write $disk -s 8 -c 7 -z 4096 -d /tmp/a >/dev/null 2>&1
nvme read $disk -s 8 -c 7 -z 4096 -d /tmp/b >/dev/null 2>&1
head -c 4096 /tmp/a | cmp - /tmp/b
nvme compare $disk -s 8 -c 7 -z 4096 -d /tmp/a >/dev/null 2>&1
if nvme compare $disk -s 9 -c 6 -z 3584 -d /tmp/a >/dev/null 2>&1; then say "a comparison with other data succeeded"; false; fi
nvme verify $disk -s 8 -c 7 >/dev/null
nvme write-zeroes $disk -s 8 -c 7 >/dev/null
nvme read $disk -s 8 -c 7 -z 4096 -d /tmp/b >/dev/null 2>&1
head -c 4096 /dev/zero | cmp - /tmp/b
nvme dsm $disk -d 1 -s 0 -b 1024 >/dev/null
nvme flush $disk -n 1 >/dev/null
if nvme read $disk -s 0xffffffffff -c 7 -z 4096 -d /tmp/b >/dev/null 2>&1; then say "read past the end"; false; fi
nvme error-log $controller -e 1 | grep -q 'lba'

health() { # field
    nvme smart-log $disk | awk -F': *' -v field="$1" '$1 ~ field {gsub(/[^0-9]/, "", $2); print $2}'
}
files() { # directory
    for i in 1 2 3 4; do cp /tmp/a $1/$i; cat /bin/fio >>$1/$i; done
    (cd $1 && sha256sum * >/tmp/sums)
    sync
}
for kind in ext4 xfs btrfs; do
    say $kind
    blkdiscard $disk 2>/dev/null || true
    case $kind in
    ext4) mkfs.ext4 -q -E discard $disk ;;
    xfs) mkfs.xfs -q -f $disk ;;
    btrfs) mkfs.btrfs -q -f $disk ;;
    esac
    mount -t $kind $disk /mnt
    mkdir -p /mnt/files
    files /mnt/files
    umount /mnt
    mount -t $kind -o discard $disk /mnt
    (cd /mnt/files && sha256sum -c /tmp/sums >/dev/null)
    rm /mnt/files/1
    fstrim /mnt 2>/dev/null || true
    umount /mnt
    case $kind in
    ext4) e2fsck -fn $disk >/dev/null ;;
    xfs) xfs_repair -n $disk >/dev/null 2>&1 ;;
    btrfs) btrfs check $disk >/dev/null 2>&1 ;;
    esac
done

check() { fio --name=verify --filename=$disk --direct=1 --ioengine=libaio --size=48m --verify=crc32c --verify_fatal=1 --verify_state_save=0 --minimal "$@" >/dev/null; }
say fio
check --rw=randwrite --bs=4k --iodepth=32
check --rw=randwrite --bssplit=512/20:4k/40:60k/20:1m/20 --iodepth=16
disconnect
# Digests of headers, and of data; without flow control a read has no response beside its data.
for options in "-g" "-g -G" "-d"; do
    say fio, connected with $options
    connect $options
    check --rw=randwrite --bssplit=4k/60:64k/20:1m/20 --iodepth=16
    disconnect
done

say wear: all of it is written twice
connect
for pass in 1 2; do
    at=0
    while test $((at + 65536)) -le $(cat /sys/block/${disk#/dev/}/size); do
        nvme write-zeroes $disk -s $at -c 65535 >/dev/null
        at=$((at + 65536))
    done
done
test $(health percentage_used) -ge 5 || { nvme smart-log $disk; false; }
disconnect

say reconnect after a power cut: writes with FUA go on
connect --reconnect-delay=1 --ctrl-loss-tmo=60
say PLUG
fio --name=cut --filename=$disk --direct=1 --sync=dsync --ioengine=psync --rw=randwrite --bs=4k --size=16m --verify=crc32c --verify_fatal=1 --verify_state_save=0 --minimal >/dev/null
say CHECKED
dmesg | grep -q 'Successfully reconnected' || { dmesg | tail; false; }
test $(health unsafe_shutdowns) -eq 1
disconnect

for how in PLUG KILL; do
    say crash: $how
    connect --ctrl-loss-tmo=0
    mkfs.ext4 -q -F $disk
    mount -t ext4 $disk /mnt
    : >/tmp/synced
    say $how
    i=0
    while dd if=/tmp/a of=/mnt/$i bs=64k count=$((i % 12 + 1)) conv=fsync 2>/dev/null && i=$((i + 1)) && test $i -lt 5000; do
        echo $((i - 1)) >>/tmp/synced
    done
    say CRASHED after $(wc -l </tmp/synced) files
    test $i -lt 5000
    umount /mnt || umount -l /mnt
    disconnect || true
    for _ in $(seq 50); do nvme discover $fabric >/dev/null 2>&1 && break; sleep 0.2; done
    connect
    code=0; e2fsck -fp $disk >/tmp/fsck || code=$?
    test $code -le 1 || { cat /tmp/fsck; false; }
    mount -t ext4 $disk /mnt
    sync_files=0
    while read -r i; do
        head -c $((65536 * (i % 12 + 1))) /tmp/a | cmp - /mnt/$i
        sync_files=$((sync_files + 1))
    done </tmp/synced
    test $sync_files -gt 0
    umount /mnt
    e2fsck -fn $disk >/dev/null
    disconnect
done
say health: the device was killed once, and lost its power twice
connect
test $(health unsafe_shutdowns) -eq 3
test $(health power_cycles) -eq 4
test $(health percentage_used) -ge 5
say "used: $(health percentage_used) %"
disconnect
trap - EXIT
say all done
SCRIPT
sed -i "s/PORT\"/$port\"/" "$folder/script"

serve
"$here/guest.sh" "$kernel" "$folder/script" >"$folder/console" 2>&1 &
guest=$!
said=0
while kill -0 "$guest" 2>/dev/null; do
    sleep 0.3
    wishes=$(grep -aoE 'guest: (PLUG|KILL)' "$folder/console" | tail -n +$((said + 1)) || true)
    for wish in $(echo "$wishes" | awk '{print $2}'); do
        said=$((said + 1))
        sleep 2
        case $wish in
        PLUG) kill -USR1 "$server" ;;
        KILL)
            kill -KILL "$server"
            wait "$server" 2>/dev/null || true
            serve
            ;;
        esac
    done
done
code=0
wait "$guest" || code=$?
guest=
if test "$code" = 3; then
    say "SKIPPED: $(tail -1 "$folder/console")"
    exit 0
fi
grep -ao 'guest: .*' "$folder/console" | tr -d '\r' | while read -r line; do say "$line"; done
grep -aq 'guest: exit 0' "$folder/console" || fail "the guest"
kill -TERM "$server"
wait "$server" || fail "the server ended with an error"
server=
grep -q 'Write amp' "$folder/err" || fail "no report"
say "ok"
