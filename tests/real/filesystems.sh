#!/bin/sh
# File systems on served devices: a FUSE file under a loop device (direct I/O). Files are written, synced, trimmed; after
# unmounting the file system is clean, after a restart the files are the same. Needs root.
#
# usage: filesystems.sh NVLAB
set -eu

nvlab=$1
folder=$(mktemp -d)
server= loop= mounted=
cleanup() {
    test -z "$mounted" || umount "$folder/mnt" 2>/dev/null || true
    test -z "$loop" || losetup -d "$loop" 2>/dev/null || true
    test -z "$server" || kill "$server" 2>/dev/null || true
    sleep 0.3
    umount "$folder/dev" 2>/dev/null || true
    rm -rf "$folder"
}
trap cleanup EXIT
mkdir "$folder/mnt"

say() { echo "filesystems.sh: $*"; }

begin() {
    "$nvlab" serve "$1" --fuse "$folder/dev" --time fast --state "$folder/state" 2>"$folder/err" &
    server=$!
    file=
    for _ in $(seq 200); do
        file=$(find "$folder/dev" -type f 2>/dev/null | head -1)
        test -n "$file" && break
        sleep 0.05
    done
    test -n "$file" || { cat "$folder/err"; echo "FAILED: no device"; exit 1; }
    loop=$(losetup --direct-io=on --show -f "$file")
}

finish() {
    losetup -d "$loop"; loop=
    # A loop device lets go of its file a little later.
    sleep 0.3
    kill -TERM "$server"
    wait "$server" || { cat "$folder/err"; echo "FAILED: the server ended with an error"; exit 1; }
    server=
}

check() { # kind
    case $1 in
    ext4) e2fsck -fn "$loop" >/dev/null ;;
    xfs) xfs_repair -n "$loop" >/dev/null 2>&1 ;;
    btrfs) btrfs check "$loop" >/dev/null 2>&1 ;;
    esac
}

fill() { # writes files, a database, and checks with fio
    cp -r "$(dirname "$0")/../../crates" "$folder/mnt/copy"
    sqlite3 "$folder/mnt/base.db" 'pragma journal_mode=wal; create table t(i integer primary key, x blob);
        with recursive c(i) as (select 1 union all select i+1 from c where i<5000)
        insert into t select i, randomblob(300) from c; pragma wal_checkpoint;' >/dev/null
    fio --name=verify --directory="$folder/mnt" --rw=randwrite --bs=4k --size=16m --ioengine=psync --fsync=64 \
        --verify=crc32c --verify_state_save=0 --do_verify=1 --minimal >/dev/null
    rm "$folder"/mnt/verify*
    sync -f "$folder/mnt"
    fstrim "$folder/mnt" || say "fstrim is not heard here"
}

# shellcheck disable=SC2043
for design in 'ssd-tlc,media.tlc.blocks=200,array.channels=1,ftl.spare=40%' \
    'ssd-mlc-2010,media.mlc.blocks=512,ftl.spare=20%' 'envy-128m'; do
    for kind in ext4 xfs btrfs; do
        command -v "mkfs.$kind" >/dev/null || { say "no mkfs.$kind: left out"; continue; }
        begin "$design"
        size=$(blockdev --getsize64 "$loop")
        # xfs wants 300 MB, btrfs 110.
        if test "$kind" != ext4 && test "$size" -lt 320000000; then
            finish; rm -rf "$folder/state"; continue
        fi
        say "$design: $kind"
        case $kind in
        ext4) mkfs.ext4 -q -F "$loop" ;;
        xfs) mkfs.xfs -q -f "$loop" ;;
        btrfs) mkfs.btrfs -q -f "$loop" ;;
        esac
        if ! mount "$loop" "$folder/mnt" 2>/dev/null; then
            say "this kernel does not mount $kind: left out"; finish; rm -rf "$folder/state"; continue
        fi
        mounted=yes
        fill
        (cd "$folder/mnt" && find copy -type f -exec sha1sum {} + | sort) >"$folder/before"
        umount "$folder/mnt"; mounted=
        check "$kind"
        finish
        tail -n +2 "$folder/err" | grep -i 'amplification\|lifetime\|waf' || true

        begin "$design"
        mount "$loop" "$folder/mnt"; mounted=yes
        (cd "$folder/mnt" && find copy -type f -exec sha1sum {} + | sort) >"$folder/after"
        cmp "$folder/before" "$folder/after"
        test "$(sqlite3 "$folder/mnt/base.db" 'select count(*) from t; pragma integrity_check;')" = "5000
ok"
        umount "$folder/mnt"; mounted=
        check "$kind"
        finish
        rm -rf "$folder/state"
    done
done
say "ok"
