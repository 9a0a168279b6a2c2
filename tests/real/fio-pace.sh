#!/bin/sh
# The pace of fio's jobs: each is run by real fio against a served design, in real time, and by nvlab on the same design. Requests
# per second, mean latency and the 99th percentile must agree within 5 %. The design is slow (reads of 10 ms), so that what NBD
# and waking up add (0.1 to 0.2 ms) stays below that; on a machine that is busy with something else it does not. A 99th
# percentile of 1500 requests is known to two deviations as one between 98.5 and 99.5: it need only be within 5 % of those.
#
# usage: fio-pace.sh NVLAB [SECONDS] [JOB...]. What it needs is installed by tests/real/install.sh, and python3.
set -eu

nvlab=$(realpath "$1")
seconds=${2:-30}
test $# -gt 2 && shift 2 || set --
if ! fio --enghelp=nbd >/dev/null 2>&1; then
    echo "fio-pace.sh: this fio has no nbd engine: skipped"
    exit 0
fi
folder=$(mktemp -d)
server=
trap 'test -z "$server" || kill "$server" 2>/dev/null || true; rm -rf "$folder"' EXIT
export NVLAB_NO_PROGRESS=1

design='ssd-mlc-2010,media.mlc.blocks=64,ftl.spare=30%,ftl.buffer.kind=none,media.mlc.read=10 ms,media.mlc.program=20 ms'
design="$design,media.mlc.erase=30 ms"

job() { # name and options
    name=$1
    shift
    {
        printf '%s\n' '[global]' ioengine=nbd "uri=nbd+unix:///?socket=$folder/socket" norandommap bs=4k rw=randread \
            size=64m percentile_list=98.5:99:99.5 time_based "runtime=$seconds" "[$name]"
        printf '%s\n' "$@"
    } >"$folder/$name.fio"
    jobs="${jobs:-} $name"
}
job one iodepth=1
job deep iodepth=8
job deeper-than-the-queue iodepth=64
job rate-below iodepth=8 rate_iops=50
job rate-near iodepth=8 rate_iops=180
job rate-above iodepth=8 rate_iops=100000
job rate-in-bytes iodepth=4 rate=300k
job poisson iodepth=8 rate_iops=50 rate_process=poisson
job mixed iodepth=4 rw=randrw rwmixread=75 rate_iops=45,15
job think iodepth=1 thinktime=15000
job think-after-blocks iodepth=4 thinktime=15000 thinktime_blocks=4
job think-when-issued iodepth=8 thinktime=30000 thinktime_blocks=16 thinktime_blocks_type=issue
job think-after-time iodepth=4 thinktime=150ms thinktime_iotime=300ms
job think-and-rate iodepth=4 thinktime=60000 thinktime_blocks=8 rate_iops=90
job think-beside-rate iodepth=4 thinktime=60000 thinktime_blocks=8 rate_iops=90 rate_ignore_thinktime=1
job reaped-by-four iodepth=16 iodepth_batch_complete=4
job reaped-by-all iodepth=16 iodepth_batch_complete=16
job low iodepth=16 iodepth_low=4

cat >"$folder/compare.py" <<'END'
import json, sys
name, fio, nvlab = sys.argv[1:]
text = open(fio).read()
real, ours, bad = json.loads(text[text.index("{"):])["jobs"][0], json.load(open(nvlab)), False
for kind in ("read", "write"):
    if not real[kind]["total_ios"]:
        continue
    low, middle, high = (value / 1e3 for _, value in sorted(real[kind]["clat_ns"]["percentile"].items()))
    rate, mean = real[kind]["iops"], real[kind]["lat_ns"]["mean"] / 1e3
    found = ours[kind]
    latency = found["latency"]
    for what, least, theirs, most, mine in [
        ("io/s", rate, rate, rate, found["per_s"]),
        ("mean us", mean, mean, mean, latency["mean_ns"] / 1e3),
        ("p99 us", low, middle, high, latency["p99_ns"] / 1e3),
    ]:
        is_off = not 0.95 * least <= mine <= 1.05 * most
        bad |= is_off
        off = f"{mine / theirs - 1:+7.1%}{'  !' if is_off else ''}"
        print(f"  {name:22} {kind:5} {what:8} fio {theirs:10.1f}  nvlab {mine:10.1f}  {off}")
sys.exit(bad)
END

failed=
for name in ${*:-$jobs}; do
    "$nvlab" serve "$design" --precondition full --nbd "$folder/socket" --time real >"$folder/out" 2>"$folder/err" &
    server=$!
    for _ in $(seq 600); do grep -q '^nbd ' "$folder/err" && break; sleep 0.1; done
    fio --output-format=json "$folder/$name.fio" >"$folder/fio.json" 2>"$folder/fio.err" ||
        { cat "$folder/fio.err"; echo "FAILED: fio, job $name"; exit 1; }
    kill -TERM "$server"
    wait "$server" || { cat "$folder/err"; echo "FAILED: the server ended with an error"; exit 1; }
    server=
    "$nvlab" run "$design" -w "$folder/$name.fio" --precondition full --json --out "$folder/runs" >"$folder/nvlab.json" 2>"$folder/err" ||
        { cat "$folder/err"; echo "FAILED: nvlab, job $name"; exit 1; }
    python3 "$folder/compare.py" "$name" "$folder/fio.json" "$folder/nvlab.json" || failed="$failed $name"
done
test -z "$failed" || { echo "FAILED: off by more than 5 %:$failed"; exit 1; }
echo "fio-pace.sh: ok"
