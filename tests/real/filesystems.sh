#!/bin/sh
# ext4, xfs and btrfs on served devices: the hybrid SSD, a page-mapped SSD, hFTL, eNVy as a disk, Moneta and NVRamDisk, each as
# a file of FUSE under a loop device (direct I/O), and one as NBD through nbdfuse. On every one of them a repository is cloned and checked,
# SQLite and PostgreSQL write and are checked, fio verifies, free space is trimmed. After unmounting, the file system is
# clean; after a restart of the server, all is there. At the end: what that did to the device. Needs root.
#
# usage: filesystems.sh NVLAB [KIND...]
set -eu

nvlab=$1
shift
kinds=${*:-ext4 xfs btrfs}
# 4 GiB of ssd-tlc, so that nothing takes long.
paged='ssd-tlc,media.tlc.blocks=150,ftl.spare=40%'
here=$(cd "$(dirname "$0")" && pwd)
postgres=$(dirname "$(readlink -f "$(command -v initdb || ls /usr/lib/postgresql/*/bin/initdb)")")
folder=$(mktemp -d)
mnt=$folder/mnt
server='' loop='' mounted='' bridge='' cluster=''
cleanup() {
    test -z "$cluster" || as_postgres "$postgres/pg_ctl" -D "$mnt/pg" -m immediate stop >/dev/null 2>&1 || true
    test -z "$mounted" || umount "$mnt" 2>/dev/null || true
    test -z "$loop" || losetup -d "$loop" 2>/dev/null || true
    test -z "$bridge" || umount "$folder/nbd" 2>/dev/null || true
    test -z "$server" || kill "$server" 2>/dev/null || true
    sleep 0.3
    umount "$folder/dev" 2>/dev/null || true
    rm -rf "$folder"
}
trap cleanup EXIT
mkdir "$mnt" "$folder/nbd" "$folder/run"
chmod 755 "$folder"
chown postgres "$folder/run"

say() { echo "filesystems.sh: $*"; }
fail() { say "FAILED: $*"; cat "$folder/err" "$folder/log" 2>/dev/null || true; exit 1; }
as_postgres() { (cd "$folder/run" && setpriv --reuid=postgres --regid=postgres --clear-groups "$@"); }
sql() { as_postgres psql -h "$folder/run" -qAt postgres -c "$1"; }

wait_for_file() { # folder
    for _ in $(seq 200); do
        file=$(find "$1" -type f 2>/dev/null | head -1)
        test -n "$file" && return
        sleep 0.05
    done
    fail "no device in $1"
}

begin() { # design, fuse|nbd
    if test "$2" = fuse; then
        "$nvlab" serve "$1" --fuse "$folder/dev" --time fast --state "$folder/state" 2>"$folder/err" &
        server=$!
        wait_for_file "$folder/dev"
    else
        "$nvlab" serve "$1" --nbd "$folder/socket" --time fast --state "$folder/state" 2>"$folder/err" &
        server=$!
        for _ in $(seq 200); do test -S "$folder/socket" && break; sleep 0.05; done
        nbdfuse "$folder/nbd" --unix "$folder/socket" &
        bridge=$!
        wait_for_file "$folder/nbd"
    fi
    loop=$(losetup --direct-io=on --show -f "$file")
}

finish() {
    losetup -d "$loop"; loop=
    # A loop device lets go of its file a little later.
    sleep 0.3
    if test -n "$bridge"; then
        umount "$folder/nbd"
        wait "$bridge" || true
        bridge=
    fi
    kill -TERM "$server"
    wait "$server" || fail "the server ended with an error"
    server=
}

make() { # kind
    case $1 in
    ext4) mkfs.ext4 -q -F "$loop" ;;
    xfs) mkfs.xfs -q -f "$loop" ;;
    btrfs) mkfs.btrfs -q -f "$loop" 2>"$folder/log" ;;
    esac
}

check() { # kind
    case $1 in
    ext4) e2fsck -fn "$loop" ;;
    xfs) xfs_repair -n "$loop" ;;
    btrfs) btrfs check "$loop" ;;
    esac >"$folder/log" 2>&1 || fail "$1 is not clean"
}

postgres_up() {
    as_postgres "$postgres/pg_ctl" -D "$mnt/pg" -w -o "-k $folder/run -h ''" -l "$folder/run/log" start >"$folder/log" ||
        fail "PostgreSQL does not start"
    cluster=yes
}

postgres_down() {
    as_postgres "$postgres/pg_ctl" -D "$mnt/pg" -w -m fast stop >"$folder/log" || fail "PostgreSQL does not stop"
    cluster=
}

fill() { # everything that writes
    git clone -q --no-local "$here/../.." "$mnt/clone"
    git -C "$mnt/clone" fsck --full --strict >"$folder/log" 2>&1 || fail "git fsck"

    sqlite3 "$mnt/base.db" 'pragma journal_mode=wal; create table t(i integer primary key, x blob);
        with recursive c(i) as (select 1 union all select i+1 from c where i<5000)
        insert into t select i, randomblob(300) from c; pragma wal_checkpoint;' >/dev/null

    mkdir "$mnt/pg" && chown postgres "$mnt/pg" && chmod 700 "$mnt/pg"
    as_postgres "$postgres/initdb" -D "$mnt/pg" --wal-segsize=1 >"$folder/log" 2>&1 || fail "initdb"
    printf 'max_wal_size = 32MB\nmin_wal_size = 4MB\n' >>"$mnt/pg/postgresql.conf"
    postgres_up
    as_postgres pgbench -h "$folder/run" -i -q -s 2 postgres >"$folder/log" 2>&1 || fail "pgbench -i"
    as_postgres pgbench -h "$folder/run" -c 4 -t 250 postgres >"$folder/log" 2>&1 || fail "pgbench"
    postgres_down

    fio --name=verify --directory="$mnt" --rw=randwrite --bs=4k --size=16m --ioengine=psync --fsync=64 \
        --verify=crc32c --verify_state_save=0 --do_verify=1 --minimal >"$folder/log" || fail "fio's verify"
    rm "$mnt"/verify*
    sync -f "$mnt"
    # A design without TRIM, or whose trims may come undone, offers no discard.
    fstrim "$mnt" 2>"$folder/log" || grep -q 'not supported' "$folder/log" || fail "fstrim"
}

verify() { # what fill wrote, after a restart
    git -C "$mnt/clone" fsck --full --strict >"$folder/log" 2>&1 || fail "git fsck after the restart"
    test -z "$(git -C "$mnt/clone" status --porcelain)" || fail "files of the clone changed"
    test "$(sqlite3 "$mnt/base.db" 'select count(*) from t; pragma integrity_check;')" = "5000
ok" || fail "SQLite after the restart"
    postgres_up
    test "$(sql 'select count(*) from pgbench_history')" = 1000 || fail "transactions are missing"
    test "$(sql 'select (select sum(delta) from pgbench_history) = (select sum(abalance) from pgbench_accounts)
        and (select sum(tbalance) from pgbench_tellers) = (select sum(bbalance) from pgbench_branches)')" = t ||
        fail "balances differ"
    postgres_down
}

round() { # design, kind, fuse|nbd
    say "$1: $2 over $3"
    begin "$1" "$3"
    make "$2"
    mount "$loop" "$mnt"; mounted=yes
    fill
    umount "$mnt"; mounted=
    check "$2"
    finish
    # What the workload did to the device.
    tail -n +2 "$folder/err" | sed 's/^/    /'

    begin "$1" "$3"
    mount "$loop" "$mnt"; mounted=yes
    verify
    umount "$mnt"; mounted=
    check "$2"
    finish
    rm -rf "$folder/state"
}

for kind in $kinds; do
    for design in hybrid-slc-mlc "$paged" hftl envy moneta,media.pcm.size=2GiB nvramdisk,media.dram.size=2GiB; do
        round "$design" "$kind" fuse
    done
    round "$paged" "$kind" nbd
done
say "ok"
