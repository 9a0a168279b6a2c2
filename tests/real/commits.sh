#!/bin/sh
# What `nvlab cut` runs in cuts.sh: SQLite (WAL, synchronous=FULL) on ext4 on the served device. After a power cut no commit
# that was acknowledged may be missing, and the file system must mount and be clean.
set -eu
mnt=/tmp/nvlab-commits-mnt
mkdir -p "$mnt"

clear_away() {
    umount -l "$mnt" 2>/dev/null || true
    losetup -a | grep -F "$NVLAB_DEV" | cut -d: -f1 | while read -r old; do losetup -d "$old" || true; done
}

case $NVLAB_PHASE in
run)
    clear_away
    mkfs.ext4 -q -F -b 4096 -J size=4 "$NVLAB_DEV" && sync "$NVLAB_DEV"
    touch "$NVLAB_NOTES/made"
    loop=$(losetup --direct-io=on --show -f "$NVLAB_DEV")
    mount "$loop" "$mnt"
    sqlite3 "$mnt/base.db" 'pragma journal_mode=wal; create table t(i integer primary key, x blob);' >/dev/null
    sync -f "$mnt"
    touch "$NVLAB_NOTES/table"
    for i in $(seq 25); do
        sqlite3 "$mnt/base.db" "pragma synchronous=full; insert into t values($i, randomblob(3000));"
        echo "$i" >"$NVLAB_NOTES/new" && mv "$NVLAB_NOTES/new" "$NVLAB_NOTES/acknowledged"
    done
    umount "$mnt"
    losetup -d "$loop"
    ;;
check)
    clear_away
    test -e "$NVLAB_NOTES/made" || exit 0
    loop=$(losetup --direct-io=on --show -f "$NVLAB_DEV")
    trap 'umount -l "$mnt" 2>/dev/null || true; losetup -d "$loop"' EXIT
    mount "$loop" "$mnt" || exit 10
    if test -e "$NVLAB_NOTES/table"; then
        newest=$(cat "$NVLAB_NOTES/acknowledged" 2>/dev/null || echo 0)
        test "$(sqlite3 "$mnt/base.db" 'pragma integrity_check;')" = ok || exit 11
        test "$(sqlite3 "$mnt/base.db" "select count(*) from t where i <= $newest;")" = "$newest" || exit 12
    fi
    umount "$mnt"
    e2fsck -fn "$loop" >/dev/null 2>&1 || exit 13
    ;;
esac
