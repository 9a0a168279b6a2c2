//! Articles: the meaning of metrics and how they are counted, and the small languages of the command line.

use super::topic::Topic;
use super::{searches, workloads, zones};

/// Every article.
pub const TOPICS: &[Topic] = &[
    Topic {
        names: &["waf", "wa", "write-amplification"],
        title: "Write amplification: bytes programmed for each byte the host wrote",
        text: "\
\x20 waf = (host + cleaning + merges + folding + between partitions + wear levelling + retired
         blocks + map + trims + padding) / host

Everything is counted in programmed mapping units. Reports split it by cause because each cause has
its own remedy: cleaning calls for more spare space, a better policy or separate streams; padding
for larger or fewer flushes, or a protected buffer; map for fewer checkpoints.

The minimum is 1, unless data is compressed or a buffer absorbs overwrites: a unit that is
overwritten while it is in a protected buffer is programmed once (`ftl.buffer.absorb`, enabled where
the buffer survives a power cut; reported as buffer.absorbed).

For uniform random writes and greedy or FIFO cleaning of many pages, with rho = logical / raw:
rho = (u - 1) / ln u gives the share u of live units in a cleaned block, and waf = 1 / (1 - u).",
    },
    Topic {
        names: &["cleaning-cost", "cost"],
        title: "Cleaning cost: units moved by the cleaner for each unit written by the host",
        text: "\
\x20 cost = moved by the cleaner / written by the host = u / (1 - u)

u is the share of live units in the cleaned blocks. This is eNVy's metric (section 4.1). If there
are only host writes and cleaning, waf = 1 + cost. With 80 % live data in every block, the cost
is 4.",
    },
    Topic {
        names: &["map", "dftl", "hmb", "dramless"],
        title: "A map that does not fit in memory: drives without DRAM, cards",
        text: "\
\x20 ftl.map = { kind = \"demand\", cache = \"512 KiB\", host_buffer = \"64 MiB\", host_read = \"1 us\" }

The map is stored in flash, in translation pages. A translation page is a unit that holds the
entries of neighbouring units (unit / ftl.map.entry of them: 4 MiB of data for units of 4 KiB). The
most recently used ones are in `cache`, the next in `host_buffer`, a part of the host's memory (HMB,
NVMe 1.2). A request looks up each translation page it touches: at once on the chip, after
`host_read` in the host's memory, otherwise after a flash read that occupies its die like any other.
A random read that misses both takes two flash reads: half the rate, twice the latency. Buffered
writes do not wait for their look-ups, but the look-ups still cause reads.

Changed translation pages are programmed when they are evicted, together with other old changed ones
as one page of the array. Those of units that the cleaner moved are rewritten in batches. For
uniform random writes with a share h of the map in memory, each unit written programs 1 - h
translation pages, and each unit moved about 1 - h. They are counted in `waf.map`; see also
`map.hits`, `map.loaded`, `map.programmed` and `map.wait`. Translation pages have blocks of their
own, which are recycled.

Nothing in memory is needed after a power cut: every `ftl.map.checkpoint`, all changed pages and
the directory of the pages are programmed; a mount reads the directory and scans what was written
after it.",
    },
    Topic {
        names: &["lifetime", "retention"],
        title: "Lifetime: how long the flash lasts at the rate of this workload",
        text: "\
\x20 days = rated cycles x blocks / cycles per day;  host bytes = rated cycles x bytes of flash / waf

The cycles of a run are the pages it programmed, plus the unprogrammed pages of erased blocks,
divided by the pages of a block. Programmed pages have to be erased eventually (eNVy section 5.5),
while counted erases lag behind on a device that starts with erased blocks; a block erased before it
is full costs a whole cycle. Data in a write buffer or waiting to be folded counts as programmed.
Wear is assumed to be even; the spread of erase counts is reported beside it, and the most worn
block once the mean erase count has reached ten. The rated limit is the part's `endurance`. Years
beyond the part's `retention_years` consider wear alone; the report says so. It also says so if the
cost of cleaning is missing: fewer than ten erases, or 90 % of the blocks filled
(lifetime.regained). In a closed loop, a slower device wears more slowly: compare lifetime.bytes
(tbw) and lifetime.dwpd, not years. The lifetime is unlimited only if nothing is programmed because
the host writes nothing. If everything written is still in a buffer, the lifetime is undetermined
and every assertion about it fails.",
    },
    Topic {
        names: &["sweeps", "sweep"],
        title: "Sweeps: many runs along axes, as one table and one page",
        text: "\
\x20 nvlab sweep FILE.toml
\x20 nvlab sweep DESIGN -w WORKLOAD -p KEY=V1,V2,... -p KEY=LO..HI:STEP -p KEY=LO..HI*FACTOR

\x20 schema = 1
\x20 [sweep]
\x20 name     = \"spare\"               names the files: sweep-spare.parquet, .csv, .json, .html
\x20 design   = \"ssd-tlc\"             or a list; set = [\"KEY=VALUE\"] applies to every point
\x20 workload = [\"zipf\", \"uniform\"]   or one string; \"fleet/*.csv\": one point per trace
\x20 seeds    = 3                     seeds 1 to 3; or a list; plots show the mean
\x20 until    = \"2 x capacity\"        as for run; likewise precondition
\x20 [[axis]]
\x20 key      = \"ftl.clean.kind\"
\x20 values   = [\"greedy\", \"fifo\"]
\x20 [[axis]]
\x20 key      = \"ftl.spare\"
\x20 range    = \"7 % .. 28 % : 7 %\"   or by a factor: \"1 MiB .. 64 MiB * 4\"
\x20 [[axis]]                         keys that change together
\x20 keys     = [\"ftl.buffer.size\", \"media.sram.size\"]
\x20 values   = [[\"4 MiB\", \"52 MiB\"], [\"16 MiB\", \"64 MiB\"]]
\x20 [[skip]]                         points to leave out
\x20 where    = \"ftl.clean.kind == 'fifo' and ftl.spare > 20 %\"

Every point is an ordinary run, so a sweep that was interrupted or killed continues with the missing
points when it is started again. --shard I/N runs every Nth point and stores its results. A run
without --shard, with --from DIR for each directory of results, makes the table.
--on dask:tcp://HOST:PORT uses a cluster. The table is byte-identical wherever the points ran. A
point without a result is a row with the reason (exit status 3). A star marks the Pareto front: no
other point under the same workload is at least as good in price, lifetime and p99 (or --front) and
better in one of them. `nvlab report DIR` makes the page of a finished sweep again.",
    },
    Topic {
        names: &["steady-state", "steady", "precondition"],
        title: "Steady state: when write amplification no longer drifts",
        text: "\
A new drive has only erased blocks and does not clean. `--precondition` sets the initial state:
  fresh      all blocks erased: the short, flattering phase of a new drive
  full       every logical unit written once, in order
  scattered  every logical unit written once, in random order: addresses that are hot together
             are not together on the medium (the hard case for eNVy's locality gathering)
  log-full   full, then written by the workload itself (a trace in whole passes) until all log
             blocks of a block map (bast, fast) are in use: with an empty log, the first writes
             cost no merges
  steady     full, then written by the workload itself until write amplification has converged
             (the default). A trace, or any workload that ends, is repeated in the same order, as
             fast as the device accepts it. Units it never writes stay as they were filled; a
             read-only workload gets a device filled in order
Suffixes, after commas: order=random fills in random order (steady,order=random; full,order=random
is the same as scattered), fill=30% writes only the first 30 % of the capacity, span=30% restricts
the writes towards the steady state to the first 30 % (default: what is filled), idle=10s adds idle
time before the first request, seed=N selects another device: steady,fill=50%,idle=10s.
`--seed` is the seed of the measured run. The device and its preconditioning have their own seed, 1
by default, so runs with different --seed start from the same device. The repetitions of --repeat
and of an axis `seed` precondition again with consecutive seeds, so their spread includes how the
device reached its state. A fresh device is drawn from --seed.
Preconditioned devices are cached in the user's cache folder (--cache DIR, --cache-size, --no-cache)
and reused by every run with the same design, preconditioning and write addresses.
Every result states in one line how its device was preconditioned: which writes, how many
capacities, what it holds, and whether it is steady. With hot and cold data this can take hundreds
of capacities, because cold data has to settle in blocks of its own.
Under a workload that visits every address once per pass (shuffled, fio's random map), write
amplification rises and falls within each pass. It is steady when whole passes agree; a run shorter
than a pass cannot show that.
A trace that writes less than twice its footprint does not show which units are rewritten, and
when. Repeating it overwrites them in their original order, which is the cheapest case. The result
says so and also gives the other extreme: the same number of bytes, written unit by unit in random
order on the same device.
Static wear levelling starts later, when erase counts have diverged: the report gives the share of
the drive's life at which it starts and an upper bound of write amplification from then on; the
reported lifetime includes it. If the last quarter of a run is more than 5 % off the converged
value, the report warns and says which causes of writes changed.
A page-mapped device of 2^20 units or more, under generators that draw each address independently,
is first settled as a coarse twin, in which up to 256 units are one, so that it takes as many times
fewer writes. If there are several streams, all must have a rate, or all must have a depth and the
same share of reads. Then each coarse unit is split, an eighth of a capacity is written at full
size, and longer windows follow until one agrees. The report says so; twin=no disables this
(steady,twin=no).
`nvlab serve DESIGN --precondition ...` serves a new device in such a state, after uniform random
writes of one unit each; the data they wrote reads as zeros.",
    },
    zones::TOPIC,
    searches::FIT,
    searches::CHOOSE,
    Topic {
        names: &["pts", "snia"],
        title: "SNIA's performance test: rounds until the last five agree",
        text: "\
`nvlab pts DESIGN` runs the tests of SNIA's Solid State Storage Performance Test Specification
(Enterprise). Each test starts with a new device (purge) and preconditions it:
  iops       random, 8 sizes x 7 mixes, 64 in flight; tracked: 4 KiB writes
  throughput sequential, 128 KiB and 1 MiB, reads and writes; tracked: writes
  latency    random, 3 sizes x 3 mixes, one in flight; tracked: 4 KiB writes
  write-saturation  random 4 KiB writes to a new device; tracked over the amount written
Steady state: the tracked values of the last 5 rounds differ by at most 20 % of their average, and
a line fitted to them changes by at most 10 %. After 25 rounds the test ends and reports that it is
not steady.
Deviations from the specification: a cell takes one second of simulated time (specification:
--cell 60s), so the device is brought to steady state by random 4 KiB writes before the rounds, not
by the rounds; and write saturation ends after 2 capacities (--saturate 4).",
    },
    Topic {
        names: &["plausible", "plausibility", "warnings"],
        title: "Implausible values: warnings when a design is read",
        text: "\
A warning names values outside the usual range, the range and its source: times and endurance of
NAND that its cell type does not reach, a link faster than its kind allows, dies that their channel
cannot keep busy, hardly any spare space. These are never errors.",
    },
    Topic {
        names: &["p99", "percentiles", "latency", "p50", "p99.9", "p99.99"],
        title: "Latency percentiles: p99 is the latency that 99 of 100 requests do not exceed",
        text: "\
Latency is simulated time from when the host issues a request until it completes, including
queueing and the host's own overhead; each kind of request is reported separately. Percentiles come
from a histogram with 64 buckets per factor of two, so a percentile is at most 1.6 % above the true
value. Mean and maximum are exact. p99.9 is meaningful from about 10 000 requests on.",
    },
    Topic {
        names: &["iops", "throughput", "bandwidth"],
        title: "Throughput: requests and bytes served per second of simulated time",
        text: "\
A closed loop (queue depth `qd`) issues the next request when one completes: throughput is a
result. Its depth may exceed the number of requests the device accepts (`path.queue`): the rest wait
in the host, and depth = throughput x mean latency always holds. An open loop (`rate`) issues
requests at given times: throughput is given, and latency is the result. If the rate exceeds what
the device can serve, latency grows without bound.",
    },
    Topic {
        names: &["erases", "wear", "wear-spread"],
        title: "Erases and their spread: how evenly blocks are worn",
        text: "\
Erase counts of all blocks since the device was new: minimum, mean, maximum and standard deviation.
Wear levelling trades extra writes (`waf`, cause: wear levelling) for a smaller spread.",
    },
    Topic {
        names: &["price"],
        title: "Price: what the media of a design cost",
        text: "\
Raw capacity times the price of the part, for the flash and every memory that the controller uses.
Controller, board, assembly and margin are not included. USD/GiB refers to the capacity the host
sees. Every part gives the source of its price; present-day prices are assumptions, good for
comparing designs.",
    },
    Topic {
        names: &["spare", "over-provisioning", "overprovisioning", "op", "utilization"],
        title: "Spare: raw capacity the host does not see",
        text: "\
\x20 logical units = floor(raw units x (1 - spare)),   utilization = 1 - spare

Drives are often described by raw / logical - 1 instead, their over-provisioning: `ftl.op = \"25 %\"`
is `ftl.spare = \"20 %\"`. Bad blocks, open blocks and the reserve of erased blocks come out of the
spare; on a small drive they may be most of it.",
    },
    Topic {
        names: &["flush", "fsync", "fdatasync", "fua", "barrier", "commit"],
        title: "Flushes: what fsync requires of a device",
        text: "\
A program's fsync makes the file system write dirty data and then flush the device: when the flush
completes, all writes acknowledged before it survive a power cut. In workloads it is flush=N (after
every N writes), in fio jobs fsync=N, fdatasync=N and end_fsync, in traces a request (FN in
blkparse, sync in an iolog). fua=yes makes each write durable by itself.

With a volatile buffer (`ftl.buffer.in` without `backup`), a flush waits until the whole buffer is
programmed, and the partly filled page is padded: waf.padding and flush.p99 show what that costs.
With a buffer that has a battery or capacitor, or without a buffer, a flush has nothing to wait for.
`nvlab cut` checks what survives.

A commit lasts from the first write after the last flush until the flush that makes it durable
completes (commit.mean, commit.p99); a write with fua=yes is a commit by itself. A flush covers the
writes completed when it is issued, so a host issues it after they complete. Where a rate issues
both at once (logger rate=, flush= with rate=), the commit takes that much longer than the write and
flush alone.",
    },
    Topic {
        names: &["parts", "basis", "datasheets"],
        title: "Parts: datasheets as files, every number with its source",
        text: "\
`nvlab parts list` and `nvlab parts show NAME`. A number in a part file is written as
  read = { value = \"100 ns\", basis = \"stated\", source = \"eNVy Fig. 12\" }
  stated    in the paper, slides or datasheet of the system itself
  cited     in another public source
  derived   follows from stated or cited numbers
  assumed   from memory or by judgement, not checked
A design uses a part by `part = \"NAME\"` or `part = \"./FILE.toml\"`, and may override single values
in the same table.",
    },
    Topic {
        names: &["designs", "extends", "set", "precedence"],
        title: "Designs: files, names, --set and precedence",
        text: "\
A design is a built-in NAME (`nvlab design list`) or a FILE.toml. Precedence, highest first:
  --set KEY=VALUE     in order; ftl.clean.kind=greedy needs no quotes
  the file
  the design it `extends`; a new `kind` or `part` drops the other keys of its table
  the part of a medium
  defaults (`nvlab explain KEY`)
`nvlab design show DESIGN` prints every value and its origin; `nvlab design diff A B` compares two
designs.",
    },
    Topic {
        names: &["units", "quantities"],
        title: "Quantities: numbers with units",
        text: "\
\x20 sizes    B, KiB, MiB, GiB, TiB (powers of 1024); kB, MB, GB, TB (powers of 1000)
  times    ps, ns, us, ms, s, min, h, d
  rates    20k/s, 90/min; 7 GB/s, 64 KiB/s; 30 ns/B
  shares   80 %, 0.8, 1e-4
  prices   0.06 USD/GiB, 30 USD/MB
  counts   1_000_000, 15.5M, 1e6
One space or none before the unit. In designs, `4k` bytes is rejected: write 4 KiB or 4 kB. In
workloads and fio job files, `4k` is 4096, as in fio, and a bare number is bytes. Values are exact:
a value that is not a whole number of bytes or picoseconds is rejected.",
    },
    Topic {
        names: &["memory", "tps", "transactions", "time-split"],
        title: "Memory: designs accessed by loads and stores",
        text: "\
A design of kind envy is a memory. It runs two kinds of workloads:
  transactions ('tpca rate=10k/s')   one processor runs them in order of arrival; each load or
                                     store starts when the previous one has completed
  requests (all others)              through a RAM disk: the processor copies blocks word by word
The latency of a load or store starts when it is issued, that of a transaction at its arrival. A
store that finds the write buffer full waits for a flush, which may wait for cleaning.

Pages move from the buffer to flash by flushes. Write amplification is pages programmed per page
flushed, i.e. 1 + cleaning cost. The time split covers the time until the last queued operation
completes: loads and stores as a share of the controller's time; flushes, cleaning and erases as a
share of the time of the concurrent operations (`ftl.concurrent`); the rest is idle time, or waiting
to resume operations that the host suspended.",
    },
    workloads::TOPIC,
    Topic {
        names: &["stacks", "stack", "stages"],
        title: "Stacks: the software between a program and a device, as stages",
        text: "\
\x20 [path]
\x20 stages = \"moneta-spin\"     a built-in stack, or a file relative to the design

Built in: moneta-baseline, moneta-no-scheduler, moneta-atomic, moneta-spin (the four steps of MICRO
2010), moneta-file-system, moneta-direct (ASPLOS 2012), ram-disk, io-uring, io-uring-polled,
polled-nvme, user-space-queue, mmap, cxl-load-store. `nvlab design show DESIGN --set
path.stages=NAME` prints its stages with the basis of each number.

\x20 schema = 1
\x20 [stack]
\x20 name       = \"mine\"        about = \"...\"   cite = \"publication, or machine, kernel and date\"
\x20 cores      = 8             optional; default: one per thread
\x20 completion = \"interrupt\"   the thread releases its core; or spin: it keeps the core and polls
\x20 spin_below = \"4 KiB\"       optional, with spin: larger requests are completed by an interrupt
\x20 [[stage]]
\x20 name   = \"system call\"
\x20 when   = \"submit\"          before the device; or complete: after the device
\x20 cpu    = \"0.4 us\"          processor time of the calling thread
\x20 per_4k = \"0.1 us\"          optional: additional processor time per 4 KiB of data
\x20 wait   = \"2 us\"            optional: time after that without a core, e.g. until a thread wakes up
\x20 lock   = \"queue\"           optional: held during the processor time, and through the next stage
\x20                              if that names it too; threads queue for it
\x20 only   = \"interrupt\"       optional: only for requests completed this way
\x20 above_driver = true        optional: skipped by recorded programs
\x20 spread = \"30 ns\"           optional: standard deviation of the measurement; not simulated
\x20 basis  = \"measured: ...\"   where the numbers come from

A thread does one thing at a time and needs a core; `threads=8 qd=4` in a workload are 8 threads
with 4 requests each. A thread keeps its core while it spins or waits for a lock (locks are spin
locks) and releases it during any other wait. software.latency is the latency without the device.
Processor time is reported as cpu.request, cpu.spin (spinning, which overlaps with the device) and
cpu.cores; lock time as lock.wait and lock.share. T threads with one lock serve
min(T / latency, 1 / time the lock is held) requests per second.

A recorded program (think=keep) was recorded at the driver. The time the kernel spent above it
(system call, file system, block layer, waking the thread) is part of the recorded computing time,
so the program skips the stages marked `above_driver`. Its requests are issued by one thread,
because a recording does not say which thread issued a request. `path.overhead.host` is added in
full.",
    },
    Topic {
        names: &["formats", "format", "traces"],
        title: "Formats: traces (input) and results (output)",
        text: "\
Traces; the format is detected by content or extension, or given after a colon (web.csv.gz:msr):
  msr        MSR Cambridge csv; with response times
  spc        Storage Performance Council, as in the UMass collection
  blkparse   output of blkparse; completions (C) give response times
  iolog      fio iolog, version 2 or 3
  mqsim      MQSim text
  alibaba    Alibaba block traces (2020)
  tencent    Tencent cloud block storage
  systor     SYSTOR '17: Timestamp,Response,IOType,LUN,Offset,Size; with response times
  fiu        FIU (IODedup, SRCMap): ns pid process lba sectors R|W major minor [hash]
  vscsi      CloudPhysics vscsi, binary, version 1 or 2 (with response times); input only
  cachelib   Meta's storage traces, csv: op_time,block_id,block_id_size,...; input only
  baleen     Meta's storage traces of Baleen: block_id io_offset io_size op_time ...; input only.
             Both name blocks; a block gets its address on the device at its first access
  table      any text table, described by its column names (below)
  parquet    a table: time_UNIT (s, ms, us, ns, ps; or a timestamp `time`), op (read, write, trim,
             flush), offset_bytes or offset_sectors, length_bytes or length_sectors; optionally
             volume, fua, response_UNIT; other columns are ignored. A folder of such files is one
             trace, with a file or folder volume=NAME per volume (trace split --extension parquet)
  nvt        nvlab's own columnar format, written by `nvlab trace convert`

Tables: -w 'my.csv columns=time_s,op,offset_bytes,length_bytes'
  time_UNIT (s, ms, us, ns, ps, 100ns), op, offset_UNIT, length_UNIT (bytes, sectors of 512 B, or a
  size such as 4KiB); optionally volume, fua, response_UNIT; columns named - and extra columns are
  ignored
  separator=comma|tab|semicolon|bar|space or one character (default: detected in the first line)
  header=yes|no        (default: yes if line 1 has no number where one belongs); # starts a comment
  read=0 write=1       additional names of operations, comma-separated; likewise trim, flush
Without columns=, they are taken from the header, exactly or by usual names (timestamp, iotype, lba,
size_bytes, latency_us); the interpretation is printed. Ambiguous names are rejected, and so are
units with two meanings (KB, pages).
For lines such as `1 0 48 W` (SimpleSSD): columns=time_us,offset_sectors,length_sectors,op

Results on stdout, by --format: human (tables), json (one document), jsonl (one per line), csv,
md. Numbers in json are in base units, with the unit in the name; `nvlab report --schema` prints the
JSON Schema (docs/results.schema.json). Columns of csv and of sweep tables are named like the
metrics, with units; -m accepts these names. So are axes: ftl.unit_bytes, ftl.spare.",
    },
    Topic {
        names: &["live-page", "live", "http"],
        title: "The live page: watch and control a device or a run",
        text: "\
\x20 nvlab serve ssd-tlc --nbd --http 127.0.0.1:7070     or: run ssd-tlc -w 'zipf qd=8' --http ...

The printed address ends with a token that lets the page pause, resume and cut the power, and set
the speed and rate of a run. A run starts in real time; if nothing is changed, its result equals
that of a run without a page.
GET /events     two JSON objects per second; GET /metrics: for Prometheus
POST /cut, /pause, /resume, /rate?per_s=N, /speed?times=N (or none), with the header X-Nvlab-Token",
    },
    Topic {
        names: &["exit-codes", "exit-code", "exit", "status"],
        title: "Exit codes",
        text: "\
\x20 0    done, every check passed
  1    done, but an --assert failed, a claim was not met, or a device failed a request
  2    invalid command line or input file; nothing was run
  3    done, but some points have no result; which and why is printed
  4    not supported by this machine; the message says what is needed
  70   a bug in nvlab
  130  interrupted (143: terminated); finished runs are kept",
    },
];
