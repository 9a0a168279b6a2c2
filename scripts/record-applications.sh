#!/usr/bin/env bash
# record-applications.sh - records the block requests of the applications in bench/applications, and of PostgreSQL, as
# programs: traces with response times, for `nvlab run DESIGN -w 'FILE.nvt think=keep'`.
#
# The device is a loop device over a file in memory, the recorder the kernel's block tracepoints: a response time is what
# passes between issue to the driver and completion, all else is the program and the kernel above the driver. A served
# design (`nvlab serve --record`) was rejected: between its answer and the next request lie FUSE, the loop device and two
# wake-ups, which a replay would take for computing (49 us a request of `raw`, instead of 5).
#
# Each application makes its data first, without memory limit and not recorded, then runs on a file system mounted anew.
# The program has real-time priority meanwhile, as another load would count as computing; for the scans the kernel threads
# of the device have it too, as a slow device hides computing that overlaps with requests in flight (read-ahead). Each is
# recorded several times, and the shortest recording is kept. All results but PostgreSQL's are verified.
#
# Needs root, Debian's libdb5.3-dev, postgresql and e2fsprogs, a Rust compiler, and about 2 GiB of memory for the device.
#
# usage: record-applications.sh NVLAB [APPLICATION]...
#
#   NV_OUT      folder of the traces                          (default traces/applications)
#   NV_RUNS     recordings of each application                (default 3)
#   NV_MEM_MB   memory of the server with its page cache, MiB (default 64)
#   NV_MEMORY   a folder of a file system in memory           (default /dev/shm)
#   NV_TARGET   folder of the compiled programs               (default bench/applications/target)
#   NV_PG_USER  unprivileged account for the server           (default postgres)
set -euo pipefail

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
say() { printf 'record-applications: %s\n' "$*" >&2; }
die() { say "error: $*"; exit 1; }
source "$here/memory-group.sh"

(($# >= 1)) || die "usage: record-applications.sh NVLAB [APPLICATION]..."
nvlab=$(realpath -- "$1")
shift
applications=("$@")
((${#applications[@]} > 0)) || applications=(raw file bdb-btree bdb-hash matmul is pg-scan pg-query
  berkeley-db-sps berkeley-db-b-tree berkeley-db-hash berkeley-db-six-degrees)

NV_OUT=${NV_OUT:-$here/../traces/applications}
NV_RUNS=${NV_RUNS:-3}
NV_MEM_MB=${NV_MEM_MB:-64}
NV_MEMORY=${NV_MEMORY:-/dev/shm}
NV_TARGET=${NV_TARGET:-$here/../bench/applications/target}
NV_PG_USER=${NV_PG_USER:-postgres}

[[ $EUID -eq 0 ]] || die "must run as root (loop device, mount, tracefs)"
[[ $(stat -f -c %T -- "$NV_MEMORY") == tmpfs ]] || die "$NV_MEMORY is not a file system in memory"
pg=
for folder in /usr/lib/postgresql/*/bin; do [[ -x $folder/initdb ]] && pg=$folder; done
[[ -n $pg || ! "${applications[*]}" =~ pg- ]] || die "PostgreSQL is missing (Debian: postgresql)"
tracefs=/sys/kernel/tracing
[[ -d $tracefs/events/block/block_rq_complete ]] || die "no block tracepoints below $tracefs"

# The matrix product is to use the machine's vectors, as a BLAS does.
RUSTFLAGS='-C target-cpu=native' cargo build --release --locked --quiet \
  --manifest-path "$here/../bench/applications/Cargo.toml" --target-dir "$NV_TARGET"
programs=$NV_TARGET/release/nvlab-bench-applications
cargo build --release --locked --quiet --manifest-path "$here/../bench/heap/Cargo.toml" --target-dir "$NV_TARGET"
objects=$NV_TARGET/release/nvlab-bench-heap
plan='{"threads":[1],"operations":2000,"seconds":0}'

# ---------------------------------------------------------------- tidy up always

work='' memory='' loop='' trace='' cgroup='' server_up=0
as_pg() { setpriv --reuid "$NV_PG_USER" --regid "$(id -g -- "$NV_PG_USER")" --init-groups -- "$@"; }
stop_server() {
  if ((server_up)); then
    as_pg "$pg/pg_ctl" -D "$work/mnt/data" -m fast -w -t 60 stop >/dev/null ||
      as_pg "$pg/pg_ctl" -D "$work/mnt/data" -m immediate -w -t 60 stop >/dev/null
    server_up=0
  fi
}
drop_device() {
  [[ -z $work ]] || ! mountpoint -q "$work/mnt" || umount "$work/mnt"
  [[ -z $loop ]] || losetup -d "$loop"
  loop=
  [[ -z $memory ]] || rm -f -- "$memory/device"
}
drop_cgroup() {
  [[ -z $cgroup || ! -d $cgroup ]] || rmdir "$cgroup" 2>/dev/null || { sleep 1; rmdir "$cgroup"; }
  cgroup=
}
cleanup() {
  local status=$?
  trap - EXIT INT TERM HUP
  set +e
  ((status == 0)) || { [[ -z $work ]] || tail -n 15 "$work"/*.log >&2; }
  cd /
  device_threads --other 0
  stop_server
  drop_device
  drop_cgroup
  [[ -z $trace ]] || rmdir "$trace"
  [[ -z $memory ]] || rm -rf -- "$memory"
  [[ -z $work ]] || mountpoint -q "$work/mnt" || rm -rf -- "$work"
  exit "$status"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

work=$(mktemp -d)
memory=$(mktemp -d -- "$NV_MEMORY/nvlab.XXXXXX")
chmod 755 "$work"
mkdir "$work/mnt" "$work/socket"
[[ -z $pg ]] || chown "$NV_PG_USER" "$work/socket"
trace=$tracefs/instances/nvlab.$$
mkdir "$trace"
echo 0 >"$trace/tracing_on"
echo mono >"$trace/trace_clock"
echo 0 >"$trace/options/overwrite"
echo 16384 >"$trace/buffer_size_kb"

# ---------------------------------------------------------------- the device

# make_device MIB: blocks in memory, all allocated, so that none is charged to a limited group later.
make_device() {
  fallocate -l "$1M" "$memory/device"
  loop=$(losetup --find --show "$memory/device")
  echo none >"/sys/block/${loop#/dev/}/queue/scheduler"
  echo 128 >"/sys/block/${loop#/dev/}/queue/read_ahead_kb" # as disks have
  device=$(cat "/sys/block/${loop#/dev/}/dev")
  for event in issue complete; do
    echo "dev == $(((${device%:*} << 20) | ${device#*:}))" >"$trace/events/block/block_rq_$event/filter"
    echo 1 >"$trace/events/block/block_rq_$event/enable"
  done
}
make_file_system() {
  mkfs.ext4 -q -F -b 4096 -E nodiscard,lazy_itable_init=0,lazy_journal_init=0 "$loop"
  mount "$loop" "$work/mnt"
}
mount_anew() {
  umount "$work/mnt"
  mount "$loop" "$work/mnt"
}

# first COMMAND...: before other programs of this machine, and their builds; a nice value would only count within a session
first() {
  (
    chrt --rr -p 1 "$BASHPID"
    "$@"
  )
}

# device_threads POLICY PRIORITY: how the kernel threads that serve the device are scheduled. First as well, they run on
# the processor that the program does not, and waking each other takes longer: for a program that reads ahead only.
device_threads() {
  local number
  for number in $(ps -e -o pid=,ni=,comm= | awk '$2 ~ /^(0|-)$/ && $3 ~ /^kworker\/u/ { print $1 }'); do
    chrt "$1" -p "$2" "$number" 2>/dev/null || true # it may have ended
  done
}

# recorded COMMAND...: its requests go to $work/run.nvt
recorded() {
  : >"$trace/trace"
  echo 1 >"$trace/tracing_on"
  first "$@" >"$work/run.log" 2>&1
  echo 0 >"$trace/tracing_on"
  convert
}
# recorded_between COMMAND...: the same of a program that switches the recording on and off, at the file that is its last argument
recorded_between() {
  : >"$trace/trace"
  first "$@" "$trace/tracing_on" >"$work/run.log" 2>&1
  convert
}
convert() {
  cat "$trace/trace" >"$work/run.ftrace"
  ! grep -qE '^(overrun|commit overrun|dropped events): [1-9]' "$trace"/per_cpu/cpu*/stats || die "events were lost"
  rm -f "$work/run.nvt"
  "$programs" convert "$work/run.ftrace" "$device" "$work/run.nvt" >"$work/convert.log"
}

# ---------------------------------------------------------------- PostgreSQL

initialise_server() {
  mkdir "$work/mnt/data"
  chown "$NV_PG_USER" "$work/mnt/data"
  chmod 700 "$work/mnt/data"
  cd "$work/socket"
  as_pg "$pg/initdb" -D "$work/mnt/data" -A trust -U postgres --locale=C -E UTF8 >"$work/initdb.log" 2>&1
  cat >>"$work/mnt/data/postgresql.conf" <<CONF
listen_addresses = ''
unix_socket_directories = '$work/socket'
shared_buffers = 16MB
huge_pages = off
work_mem = 4MB
jit = off
autovacuum = off
max_parallel_workers_per_gather = 0
checkpoint_timeout = 1h
max_wal_size = 4GB
CONF
}
start_server() { # in the limited group, if there is one
  (
    if [[ -n $cgroup ]]; then echo "$BASHPID" >"$cgroup/cgroup.procs"; fi
    first as_pg "$pg/pg_ctl" -D "$work/mnt/data" -l "$work/socket/server.log" -w -t 60 start >/dev/null
  )
  server_up=1
}
sql() { as_pg "$pg/psql" -h "$work/socket" -U postgres -d postgres -v ON_ERROR_STOP=1 -qAt "$@"; }

# A catalogue of observations, as a sky survey's: one table.
load_scan() {
  sql <<'SQL'
select setseed(0.5);
create table observation as
  select i as id, 360 * random() as ra, 180 * random() - 90 as declination, (14 + 8 * random())::real as magnitude,
         (random() * 0.2)::real as error, 55000 + random() * 500 as epoch, (random() * 300)::int as field,
         (random() * 8)::int as filter, (random() * 256)::int as flags
  from generate_series(1, 4600000) i;
vacuum (freeze, analyze) observation;
checkpoint;
SQL
}
run_scan() {
  sql <<'SQL'
select filter, count(*), avg(magnitude), stddev(magnitude) from observation group by filter order by filter;
select field, count(*), min(epoch), max(epoch), avg(declination) from observation group by field order by field;
select count(*), avg(error) from observation where ra between 120 and 150 and declination between -10 and 20 and flags < 32;
SQL
}

# A network of interactions: nodes, edges and three indices; who is two steps away from a node.
load_query() {
  sql <<'SQL'
select setseed(0.5);
create table node as
  select i as id, 'node ' || i as name, (random() * 40)::int as kind, repeat(md5(i::text), 4) as attributes
  from generate_series(1, 570000) i;
create table edge as
  select 1 + (random() * 569999)::int as source, 1 + (random() * 569999)::int as target, (random() * 12)::int as kind,
         random()::real as weight
  from generate_series(1, 2300000) i;
alter table node add primary key (id);
create index edge_source on edge (source);
create index edge_target on edge (target);
vacuum (freeze, analyze);
checkpoint;
SQL
  cat >"$work/socket/query.sql" <<'SQL'
\set id random(1, 570000)
select count(*), max(n.name) from edge a join edge b on b.source = a.target join node n on n.id = b.target
  where a.source = :id and n.kind < 20;
select count(*), sum(e.weight) from edge e join node n on n.id = e.source where e.target = :id;
SQL
}
run_query() {
  as_pg "$pg/pgbench" -h "$work/socket" -U postgres -n -M prepared -c 1 -t 300 --random-seed=35 \
    -f "$work/socket/query.sql" postgres
}

record_server() { # scan | query
  make_device 1536
  make_file_system
  initialise_server
  start_server
  "load_$1" >"$work/load.log"
  database=$(sql -c 'select pg_database_size(current_database()) >> 20')
  say "$application: database of $database MiB"
  stop_server
  cd /
  mount_anew
  make_cgroup "$NV_MEM_MB"
  cd "$work/socket"
  start_server
  [[ $1 != scan ]] || device_threads --rr 1
  recorded "run_$1"
  device_threads --other 0
  stop_server
  cd /
  drop_cgroup
}

# ---------------------------------------------------------------- the applications

record_once() {
  case $application in
    raw)
      make_device 512
      recorded "$programs" raw run "$loop"
      ;;
    file | bdb-btree | bdb-hash | matmul | is)
      make_device 1024
      make_file_system
      "$programs" "$application" load "$work/mnt" >"$work/load.log"
      mount_anew
      recorded "$programs" "$application" run "$work/mnt"
      [[ $application == file ]] || "$programs" "$application" verify "$work/mnt" >"$work/verify.log"
      ;;
    berkeley-db-*) # the data are in the cache of Berkeley DB, which writes its log
      make_device 1024
      make_file_system
      "$objects" --child load berkeley-db "${application#berkeley-db-}" "$work/mnt" "$plan" >"$work/load.log"
      mount_anew
      recorded_between "$objects" --child record berkeley-db "${application#berkeley-db-}" "$work/mnt" "$plan"
      ;;
    pg-scan | pg-query) record_server "${application#pg-}" ;;
    *) die "unknown application: $application" ;;
  esac
  drop_device
}

# recorded_us: how long the program took
recorded_us() { sed -n 's/.*waiting \([0-9]*\) us, computing \([0-9]*\) us.*/\1 + \2/p' "$work/convert.log"; }

mkdir -p -- "$NV_OUT"
for application in "${applications[@]}"; do
  least=
  for ((number = 1; number <= NV_RUNS; number++)); do
    record_once
    "$nvlab" trace info -q "$work/run.nvt" >/dev/null # it can be read
    took=$(($(recorded_us)))
    say "$application $number: $(cat "$work/convert.log"), load $(cut -d' ' -f1 /proc/loadavg)"
    if [[ -z $least ]] || ((took < least)); then
      least=$took
      cp -- "$work/run.nvt" "$NV_OUT/$application.nvt"
    fi
  done
  say "$application: kept the one of $least us, $(stat -c %s "$NV_OUT/$application.nvt") bytes"
done
