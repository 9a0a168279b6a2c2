#!/bin/sh
# What `nvlab cut --check fs=KIND --check program` runs in cuts.sh: SQLite (WAL, synchronous=FULL) on a file system on the
# served device. What it prints was acknowledged: after a power cut no commit that was may be missing.
set -eu

case $NVLAB_PHASE in
run)
    sqlite3 base.db 'pragma journal_mode=wal; create table t(i integer primary key, x blob);' >/dev/null
    sync base.db .
    echo table
    for i in $(seq 40); do
        sqlite3 base.db "pragma synchronous=full; insert into t values($i, randomblob(3000));"
        echo "$i"
    done
    ;;
check)
    grep -q table "$NVLAB_MARKS" || exit 0
    newest=$(grep -v table "$NVLAB_MARKS" | tail -1)
    newest=${newest:-0}
    test "$(sqlite3 base.db 'pragma integrity_check;')" = ok || exit 11
    test "$(sqlite3 base.db "select count(*) from t where i <= $newest;")" = "$newest" || exit 12
    ;;
esac
