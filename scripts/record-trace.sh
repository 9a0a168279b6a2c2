#!/usr/bin/env bash
# Record a block-level trace of PostgreSQL running pgbench (TPC-B-like) on ext4.
#
# The database lies on a fresh ext4 file system on a loop device (direct I/O to
# a sparse file).  The kernel's block_rq_issue tracepoint (the one behind
# blktrace's "D" action) is recorded for that device alone, through a private
# tracefs instance, from before mkfs until enough requests were seen.  The
# record is rewritten as blkparse default text by ftrace-to-blkparse.py (next
# to this script), cut so that it fits the size limit, and compressed.
#
# Needs: Linux with CONFIG_BLK_DEV_IO_TRACE, root, loop devices, ext4,
# PostgreSQL with pgbench, python3, zstd.  Run:  sudo scripts/record-trace.sh
#
# Parameters (environment variables):
#   NV_OUT            output file        (default: traces/pgbench-ext4.blkparse.zst)
#   NV_STATS          statistics, Markdown ("-" = standard output only; default -)
#   NV_SCRATCH        scratch directory on a real file system (default /tmp/nvtrace)
#   NV_DEVICE_MB      size of the loop device, MiB            (default 2048)
#   NV_SCALE          pgbench scale factor                    (default 70)
#   NV_CLIENTS        pgbench clients                         (default 8)
#   NV_RATE           transactions per second offered, 0 = as fast as possible
#                                                             (default 1500)
#   NV_SECONDS        longest time of the pgbench run         (default 600)
#   NV_REQUESTS       stop after so many traced requests      (default 650000)
#   NV_MAX_BYTES      largest compressed output               (default 3670016)
#   NV_SHARED_BUFFERS PostgreSQL shared_buffers               (default 128MB)
#   NV_MAX_WAL        PostgreSQL max_wal_size                 (default 384MB)
#   NV_CKPT_TIMEOUT   PostgreSQL checkpoint_timeout           (default 30s)
#   NV_WAL_RECYCLE    PostgreSQL wal_recycle; "off" makes old log segments be
#                     deleted, hence discarded                (default off)
#   NV_MEM_MB         memory limit of the server with its page cache, MiB, so
#                     that the database does not fit in the cache; 0 = no limit
#                                                             (default 768)
#   NV_MOUNT_OPTS     mount options                           (default discard)
#   NV_SEED           pgbench random seed                     (default 20250101)
#   NV_PG_BIN         directory of initdb, postgres, pgbench  (default: found)
#   NV_PG_USER        unprivileged account for the server     (default postgres)
#   NV_INSTALL        1 = install missing Debian packages with apt-get (default 0)
#   NV_KEEP           1 = keep the scratch directory          (default 0)
set -euo pipefail

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
converter=$here/ftrace-to-blkparse.py

NV_OUT=${NV_OUT:-$here/../traces/pgbench-ext4.blkparse.zst}
NV_STATS=${NV_STATS:--}
NV_SCRATCH=${NV_SCRATCH:-/tmp/nvtrace}
NV_DEVICE_MB=${NV_DEVICE_MB:-2048}
NV_SCALE=${NV_SCALE:-70}
NV_CLIENTS=${NV_CLIENTS:-8}
NV_RATE=${NV_RATE:-1500}
NV_SECONDS=${NV_SECONDS:-600}
NV_REQUESTS=${NV_REQUESTS:-650000}
NV_MAX_BYTES=${NV_MAX_BYTES:-3670016}
NV_SHARED_BUFFERS=${NV_SHARED_BUFFERS:-128MB}
NV_MAX_WAL=${NV_MAX_WAL:-384MB}
NV_CKPT_TIMEOUT=${NV_CKPT_TIMEOUT:-30s}
NV_WAL_RECYCLE=${NV_WAL_RECYCLE:-off}
NV_MEM_MB=${NV_MEM_MB:-768}
NV_MOUNT_OPTS=${NV_MOUNT_OPTS:-discard}
NV_SEED=${NV_SEED:-20250101}
NV_PG_BIN=${NV_PG_BIN:-}
NV_PG_USER=${NV_PG_USER:-postgres}
NV_INSTALL=${NV_INSTALL:-0}
NV_KEEP=${NV_KEEP:-0}

say() { printf 'record-trace: %s\n' "$*" >&2; }
die() { say "error: $*"; exit 1; }
source "$here/memory-group.sh"

# ---------------------------------------------------------------- what is needed

[[ $(uname -s) == Linux ]] || die "this recorder uses Linux block tracing"
[[ $EUID -eq 0 ]] || die "must run as root (loop device, mount, tracefs)"
[[ -r $converter ]] || die "missing helper $converter"

find_pg() {
  local dir best=
  if [[ -n $NV_PG_BIN ]]; then
    best=$NV_PG_BIN
  else
    for dir in /usr/lib/postgresql/*/bin; do
      [[ -x $dir/initdb ]] && best=$dir
    done
    if [[ -z $best ]] && command -v initdb >/dev/null; then
      best=$(dirname -- "$(command -v initdb)")
    fi
  fi
  printf '%s' "$best"
}

missing_packages() {
  local pg
  pg=$(find_pg)
  [[ -n $pg && -x $pg/pgbench ]] || echo postgresql
  command -v mkfs.ext4 >/dev/null || echo e2fsprogs
  command -v losetup >/dev/null || echo util-linux
  command -v setpriv >/dev/null || echo util-linux
  command -v zstd >/dev/null || echo zstd
  command -v python3 >/dev/null || echo python3
}

mapfile -t missing < <(missing_packages | sort -u)
if ((${#missing[@]} > 0)); then
  if [[ $NV_INSTALL == 1 ]] && command -v apt-get >/dev/null; then
    say "installing: ${missing[*]}"
    apt-get update -q
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}"
    mapfile -t missing < <(missing_packages | sort -u)
  fi
  ((${#missing[@]} == 0)) ||
    die "missing programs of these (Debian) packages: ${missing[*]}; install them, or set NV_INSTALL=1"
fi
NV_PG_BIN=$(find_pg)
for program in initdb pg_ctl postgres pgbench psql; do
  [[ -x $NV_PG_BIN/$program ]] || die "$NV_PG_BIN/$program not found; set NV_PG_BIN"
done
id -- "$NV_PG_USER" >/dev/null 2>&1 || die "no account '$NV_PG_USER'; set NV_PG_USER"
pg_group=$(id -g -- "$NV_PG_USER")

# ---------------------------------------------------------------- tidy up always

work='' mnt='' loop='' trace='' tracefs='' mounted_tracefs=0 cgroup='' data=''
bench_pid='' server_up=0

as_pg() { setpriv --reuid "$NV_PG_USER" --regid "$pg_group" --init-groups -- "$@"; }

stop_server() {
  if [[ $server_up == 1 ]]; then
    as_pg "$NV_PG_BIN/pg_ctl" -D "$data" -m fast -w -t 120 stop >/dev/null ||
      as_pg "$NV_PG_BIN/pg_ctl" -D "$data" -m immediate -w -t 60 stop >/dev/null || return 1
    server_up=0
  fi
}

stop_bench() {
  if [[ -n $bench_pid ]]; then
    kill -TERM "$bench_pid" 2>/dev/null || true
    wait "$bench_pid" 2>/dev/null || true
    bench_pid=
  fi
}

cleanup() {
  local status=$?
  trap - EXIT INT TERM HUP
  set +e
  if ((status != 0)) && [[ -n $work ]]; then
    for log in "$work"/*.log; do
      [[ -s $log ]] && { say "last lines of $(basename -- "$log"):"; tail -n 15 "$log" >&2; }
    done
  fi
  stop_bench
  cd /
  stop_server
  if [[ -n $trace && -d $trace ]]; then
    echo 0 >"$trace/tracing_on"
    echo 0 >"$trace/events/block/block_rq_issue/enable"
    rmdir "$trace" || say "could not remove $trace"
  fi
  if [[ -n $mnt ]] && mountpoint -q "$mnt"; then
    umount "$mnt" || { sleep 2; umount "$mnt" || say "could not unmount $mnt"; }
  fi
  [[ -n $loop ]] && { losetup -d "$loop" || say "could not detach $loop"; }
  if [[ -n $cgroup && -d $cgroup ]]; then
    for _ in 1 2 3 4 5; do
      rmdir "$cgroup" 2>/dev/null && break
      sleep 1
    done
    [[ -d $cgroup ]] && say "could not remove $cgroup"
  fi
  [[ $mounted_tracefs == 1 ]] && umount "$tracefs"
  if [[ -n $work && -d $work ]]; then
    if [[ $NV_KEEP == 1 ]]; then
      say "kept $work"
    elif [[ -n $mnt ]] && mountpoint -q "$mnt"; then
      say "left $work in place: still mounted"
    else
      rm -rf -- "$work"
    fi
  fi
  exit "$status"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# ---------------------------------------------------------------- device and observer

mkdir -p -- "$NV_SCRATCH"
work=$(mktemp -d -- "$NV_SCRATCH/rec.XXXXXX")
chmod 755 "$work"
mnt=$work/mnt
mkdir "$mnt"
truncate -s "${NV_DEVICE_MB}M" "$work/device.img"
loop=$(losetup --find --show --direct-io=on "$work/device.img") ||
  die "no loop device with direct I/O on $NV_SCRATCH"
devno=$(cat "/sys/class/block/${loop#/dev/}/dev")

tracefs=/sys/kernel/tracing
if [[ ! -d $tracefs/instances ]]; then
  [[ -d $tracefs ]] || die "no $tracefs: this kernel has no tracefs"
  mount -t tracefs tracefs "$tracefs" || die "cannot mount tracefs"
  mounted_tracefs=1
fi
[[ -d $tracefs/events/block/block_rq_issue ]] ||
  die "no block_rq_issue tracepoint (CONFIG_BLK_DEV_IO_TRACE)"
trace=$tracefs/instances/nvtrace.$$
mkdir "$trace"
echo 0 >"$trace/tracing_on"
echo mono >"$trace/trace_clock"
echo 0 >"$trace/options/overwrite" # when full, lose the newest; detected below
cpus=$(getconf _NPROCESSORS_CONF)
# An event takes about 80 bytes; allow every request to fall on any one CPU.
echo $(((NV_REQUESTS + 50000) * 112 / 1024)) >"$trace/buffer_size_kb"
echo "dev == $(((${devno%:*} << 20) | ${devno#*:}))" \
  >"$trace/events/block/block_rq_issue/filter"
echo 1 >"$trace/events/block/block_rq_issue/enable"

phase() {
  say "phase: $1"
  echo "nvtrace phase $1" >"$trace/trace_marker"
}
seen() { awk '/^entries:/ { n += $2 } END { print n + 0 }' "$trace"/per_cpu/cpu*/stats; }

# A memory limit for the server, so that reads reach the device; NV_MEM_MB=0 does without.
if ((NV_MEM_MB > 0)); then make_cgroup "$NV_MEM_MB"; fi

# ---------------------------------------------------------------- record

say "kernel $(uname -r), $cpus CPUs, $("$NV_PG_BIN/postgres" --version)"
recorded_on=$(date -u +%Y-%m-%d)
echo 1 >"$trace/tracing_on"

phase mkfs
mkfs.ext4 -q "$loop" >"$work/mkfs.log" 2>&1

phase initdb
mount -t ext4 -o "$NV_MOUNT_OPTS" "$loop" "$mnt"
data=$mnt/pgdata
mkdir "$data" "$work/socket"
chown "$NV_PG_USER" "$data" "$work/socket"
chmod 700 "$data"
cd "$work/socket"
as_pg "$NV_PG_BIN/initdb" -D "$data" -A trust -U postgres --locale=C -E UTF8 >"$work/initdb.log" 2>&1
cat >>"$data/postgresql.conf" <<CONF
listen_addresses = ''
unix_socket_directories = '$work/socket'
shared_buffers = $NV_SHARED_BUFFERS
huge_pages = off
max_connections = $((NV_CLIENTS + 20))
checkpoint_timeout = $NV_CKPT_TIMEOUT
max_wal_size = $NV_MAX_WAL
min_wal_size = 32MB
wal_recycle = $NV_WAL_RECYCLE
log_checkpoints = on
autovacuum_naptime = 15s
CONF
: >"$work/server.log"
chown "$NV_PG_USER" "$work/server.log"
(
  if [[ -n $cgroup ]]; then echo "$BASHPID" >"$cgroup/cgroup.procs"; fi
  as_pg "$NV_PG_BIN/pg_ctl" -D "$data" -l "$work/server.log" -w -t 60 start >/dev/null
)
server_up=1
export PGHOST=$work/socket PGUSER=postgres PGDATABASE=postgres

phase load
as_pg "$NV_PG_BIN/pgbench" -i -q -s "$NV_SCALE" >"$work/load.log" 2>&1

phase run
rate=()
if ((NV_RATE > 0)); then rate=(--rate="$NV_RATE"); fi
as_pg "$NV_PG_BIN/pgbench" -c "$NV_CLIENTS" -j 1 -T "$NV_SECONDS" -P 10 \
  --random-seed="$NV_SEED" "${rate[@]}" >"$work/bench.log" 2>&1 &
bench_pid=$!
while kill -0 "$bench_pid" 2>/dev/null; do
  n=$(seen)
  if ((n >= NV_REQUESTS)); then break; fi
  sleep 1
done
echo 0 >"$trace/tracing_on"
n=$(seen)
say "$n events recorded"
stop_bench
if grep -qiE 'aborted|fatal' "$work/bench.log"; then die "pgbench failed"; fi
if grep -qE 'PANIC|No space left' "$work/server.log"; then die "the server failed"; fi

lost=$(awk '/^(overrun|commit overrun|dropped events):/ { n += $NF } END { print n + 0 }' \
  "$trace"/per_cpu/cpu*/stats)
((lost == 0)) || die "$lost events were lost; the trace buffer is too small"
cat "$trace/trace" >"$work/trace.ftrace"
checkpoints=$(grep -c 'checkpoint complete' "$work/server.log" || true)
transactions=$(as_pg "$NV_PG_BIN/psql" -Atc 'select count(*) from pgbench_history')
database=$(as_pg "$NV_PG_BIN/psql" -Atc 'select pg_database_size(current_database()) >> 20')
stop_server
cd /

# ---------------------------------------------------------------- convert, cut, compress

full=$work/full.txt
text=$work/pgbench.blkparse
python3 "$converter" convert "$work/trace.ftrace" >"$full"
lines=$(wc -l <"$full")
keep=$lines
while :; do
  head -n "$keep" "$full" >"$text"
  nice zstd -q -f -19 --long=25 "$text" -o "$text.zst"
  size=$(stat -c %s "$text.zst")
  say "$keep requests -> $size bytes"
  if ((size <= NV_MAX_BYTES)); then break; fi
  keep=$((keep * (NV_MAX_BYTES - 8192) / size))
done
zstd -q -t "$text.zst"
mkdir -p -- "$(dirname -- "$NV_OUT")"
cp -- "$text.zst" "$NV_OUT"

{
  echo "Recorded: $recorded_on, kernel $(uname -r), $cpus CPUs, device $NV_DEVICE_MB MiB"
  echo "PostgreSQL: $("$NV_PG_BIN/postgres" --version); $(mkfs.ext4 -V 2>&1 | head -n 1)"
  echo "Requests recorded: $lines; kept: $keep; compressed bytes: $size"
  echo "Until the end of the recording: $transactions transactions, $checkpoints checkpoints"
  echo "Database size after the run: $database MiB"
  echo
  python3 "$converter" stats "$work/trace.ftrace" "$keep"
} >"$work/stats.md"
cat "$work/stats.md"
if [[ $NV_STATS != - ]]; then cp -- "$work/stats.md" "$NV_STATS"; fi
say "wrote $NV_OUT"
