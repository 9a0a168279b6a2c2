//! Articles: what a metric means and how it is counted, and the small languages of the command line.

use super::topic::Topic;
use super::{searches, workloads};

/// Every article.
pub const TOPICS: &[Topic] = &[
    Topic {
        names: &["waf", "wa", "write-amplification"],
        title: "Write amplification: bytes programmed for each byte the host wrote",
        text: "\
\x20 waf = (host + cleaning + merges + folding + between partitions + wear levelling + retired
         blocks + map + trims + padding) / host

All are counted in mapping units that were programmed. Reports split it by cause, because the cure
differs: cleaning wants more spare or a better policy or separated streams; padding wants larger or
fewer flushes, or a protected buffer; map wants fewer checkpoints.

1 is the least possible without compression and without a buffer that absorbs overwrites: what is
written again while it is in a protected buffer is programmed once (`ftl.buffer.absorb`, on where
the buffer survives a power cut; buffer.absorbed says how much).

For uniform random writes and greedy or FIFO cleaning of many pages, with rho = logical / raw:
rho = (u - 1) / ln u gives the share u of live units in a cleaned block, and waf = 1 / (1 - u).",
    },
    Topic {
        names: &["cleaning-cost", "cost"],
        title: "Cleaning cost: units the cleaner moved for each unit the host wrote",
        text: "\
\x20 cost = moved by the cleaner / written by the host = u / (1 - u)

u is the share of live units in the blocks that were cleaned. It is the measure of eNVy (section
4.1); with nothing but host writes and cleaning, waf = 1 + cost. 80 % live in every block makes it
4.",
    },
    Topic {
        names: &["map", "dftl", "hmb", "dramless"],
        title: "A map that does not fit in memory: drives without DRAM, cards",
        text: "\
\x20 ftl.map = { kind = \"demand\", cache = \"512 KiB\", host_buffer = \"64 MiB\", host_read = \"1 us\" }

The map lies in flash, in translation pages: units with the entries of neighbouring units (unit /
ftl.map.entry of them: 4 MiB of data for units of 4 KiB). Those used last are in `cache`, the next
in `host_buffer`, a part of the host's memory (HMB, NVMe 1.2). A request looks up each translation
page it touches: on the chip at once, in the host's memory after `host_read`, otherwise after a read
of the flash, which occupies its die as any other. Random reads beyond what the memory covers take
two reads each: half of the rate, twice the time. Buffered writes do not wait, but their look-ups
read too.

Changed pages are programmed when they leave memory, with others changed long ago as one page of the
array; pages of units that the cleaner moved are rewritten, many together. For uniform random writes
of which memory covers a share h: 1 - h programs of a translation page for each unit written, and
about 1 - h for each unit moved. They are `waf.map`; `map.hits`, `map.loaded`, `map.programmed` and
`map.wait` say the rest. The pages have blocks of their own, which are recycled.

Memory is lost with the power, and not needed: every `ftl.map.checkpoint` all changed pages and the
directory of the pages are programmed; a mount reads the directory and scans what was written since.",
    },
    Topic {
        names: &["lifetime", "retention"],
        title: "Lifetime: how long the flash lasts at the rate of this workload",
        text: "\
\x20 days = rated cycles x blocks / cycles per day;  host bytes = rated cycles x bytes of flash / waf

Cycles of a run are the pages it programmed, and those an erase found not programmed, over the pages
of a block: what is programmed has to be erased one day (eNVy section 5.5), and erases lag behind on
a device that begins with erased blocks; a block erased before it was full costs a cycle all the
same. What waits in a write buffer, or to be folded, counts as programmed.
Wear is taken to be spread evenly; the spread of the erase counts is reported beside it, and the
block most worn once the mean block was erased ten times. The part's `endurance` is the rated limit.
Years beyond the part's `retention_years` are of wear alone: the report says so, and if the cost of
cleaning is missing: fewer than ten erases, or 90 % of the blocks filled (lifetime.regained). In a
closed loop a slower device wears more slowly: compare lifetime.bytes (tbw) and lifetime.dwpd, not
years. Without end is only what programs nothing for a host that writes nothing; if all that was
written is still in a buffer, the lifetime is not determined and no assertion about it holds.",
    },
    Topic {
        names: &["sweeps", "sweep"],
        title: "Sweeps: many runs along axes, as one table and one page",
        text: "\
\x20 nvlab sweep FILE.toml
\x20 nvlab sweep DESIGN -w WORKLOAD -p KEY=V1,V2,... -p KEY=LO..HI:STEP -p KEY=LO..HI*FACTOR

\x20 schema = 1
\x20 [sweep]
\x20 name     = \"spare\"               of the files: sweep-spare.parquet, .csv, .json, .html
\x20 design   = \"ssd-tlc\"             or a list; set = [\"KEY=VALUE\"] changes it at every point
\x20 workload = [\"zipf\", \"uniform\"]   or one text; \"fleet/*.csv\" is a fleet: a point for each trace
\x20 seeds    = 3                     so many from 1 on, or a list; figures show the mean
\x20 until    = \"2 x capacity\"        as for run; so is precondition
\x20 [[axis]]
\x20 key      = \"ftl.clean.kind\"
\x20 values   = [\"greedy\", \"fifo\"]
\x20 [[axis]]
\x20 key      = \"ftl.spare\"
\x20 range    = \"7 % .. 28 % : 7 %\"   or by a factor: \"1 MiB .. 64 MiB * 4\"
\x20 [[axis]]                         keys that move together
\x20 keys     = [\"ftl.buffer.size\", \"media.sram.size\"]
\x20 values   = [[\"4 MiB\", \"52 MiB\"], [\"16 MiB\", \"64 MiB\"]]
\x20 [[skip]]                         points that are not run
\x20 where    = \"ftl.clean.kind == 'fifo' and ftl.spare > 20 %\"

Every point is an ordinary run: a sweep that was interrupted or killed runs what is missing when it
is started again. --shard I/N runs every Nth point and keeps its results; without --shard, and with
--from DIR for results kept elsewhere, the table is made; --on dask:tcp://HOST:PORT uses a cluster.
It has the same bytes wherever points ran. A point without a result is a row saying why (status 3).
A star marks the Pareto front: nothing under the same workload is as good in price, lifetime and p99
(or --front) and better in one. `nvlab report DIR` makes the page of a finished sweep again.",
    },
    Topic {
        names: &["steady-state", "steady", "precondition"],
        title: "Steady state: when write amplification no longer drifts",
        text: "\
A new drive has every block erased and cleans nothing. `--precondition` says where a run begins:
  fresh    every block erased: the first, flattering minutes
  full     every logical unit written once, in order
  scattered  every logical unit written once, in random order: what is hot by address is not
           together on the medium (where locality gathering of eNVy has everything to do)
  log-full  full, then written by the workload itself (a recording in whole passes) until all log
           blocks of a block map (bast, fast) are in use: one that begins empty takes writes for
           nothing at first
  steady   full, then written by the workload itself until write amplification has converged (the
           default). A trace, and whatever else has an end, is repeated in the same order, as fast
           as the device takes it; what it never writes stays as it was filled, and what only
           reads finds the device filled in order
After commas: order=random fills in random order (steady,order=random; full,order=random is
scattered), fill=30% writes only the first 30 % of the capacity, span=30% sends the writes to
the steady state to the first 30 % (else to what is filled), idle=10s lets time pass before the
first request, seed=N draws another device: steady,fill=50%,idle=10s.
`--seed` draws what is measured. The device and its preparation have a seed of their own, 1 unless
given, so that runs with other seeds begin with the same device. Those of --repeat, and of an axis
`seed`, prepare anew, with the following seeds: how a device came to its state is part of their
spread. A fresh device is drawn by --seed.
Prepared devices are kept in the user's cache folder (--cache DIR, --cache-size, --no-cache) and
used again by every run with the same design, preparation and addresses of writes.
Every result says in one line how its device was prepared: by whose writes, how many capacities,
what it holds, and whether it is steady. With hot and cold data this can take hundreds of
capacities, since the cold data must find its place.
Under a workload that goes over all its places before it comes back to one (shuffled, fio's random
map) write amplification rises and falls within every pass: it is steady when whole passes agree,
and a run that is shorter than a pass does not show it.
A trace that writes less than twice what it touches does not say which of its units are written
again, and when. Repeated, it overwrites them in the order in which it wrote them, which costs
least; the result says so, and names the other end as well: as many bytes, written unit by unit in
random order on the same device.
Static wear levelling begins later, when blocks have drifted apart: the report says at which share
of the drive's life, and what write amplification will then be at most; the lifetime contains it. If
the last quarter of a run is more than 5 % away from the converged value, the report warns and says
which moves changed.
A page-mapped device of 2^20 units and more, under generators that draw every address anew, is
settled as a twin first: up to 256 units are one in it, so it takes as many times fewer writes. Of
several streams, all must have a rate, or all a depth and the same share of reads. Then
each is split into its units and an eighth of a capacity is written at full size, then longer
windows until one agrees. The report says so; twin=no does without (steady,twin=no).
`nvlab serve DESIGN --precondition ...` serves a new device in such a state, after uniform writes of
its unit; what they wrote reads as zeros.",
    },
    searches::FIT,
    searches::CHOOSE,
    Topic {
        names: &["pts", "snia"],
        title: "SNIA's performance test: rounds until the last five agree",
        text: "\
`nvlab pts DESIGN` runs the tests of SNIA's Solid State Storage Performance Test Specification
(Enterprise). Each begins with a new device (purge) and prepares it:
  iops       random, 8 sizes x 7 mixes, 64 in flight; tracked: 4 KiB writes
  throughput sequential, 128 KiB and 1 MiB, reads and writes; tracked: writes
  latency    random, 3 sizes x 3 mixes, one in flight; tracked: 4 KiB writes
  write-saturation  random writes of 4 KiB to a new device, over what was written
Steady: the tracked values of the last 5 rounds differ by at most 20 % of their average, and the
line through them changes by at most 10 %. After 25 rounds a test ends and says that it is not.
Not as specified: a cell takes a second of simulated time (--cell 60s: the specification's), so the
device is brought to its steady state by random writes of 4 KiB before the rounds, not by them; and
write saturation ends after 2 capacities (--saturate 4).",
    },
    Topic {
        names: &["plausible", "plausibility", "warnings"],
        title: "Values that are hardly meant: warnings when a design is read",
        text: "\
Times and endurance of NAND outside of what its kind of cell can do, a link faster than its
kind allows, dies that their channel can never feed, hardly any spare space: such values are named
with the usual range and its basis. They are warnings, never errors.",
    },
    Topic {
        names: &["p99", "percentiles", "latency", "p50", "p99.9", "p99.99"],
        title: "Latency percentiles: p99 is the latency that 99 of 100 requests do not exceed",
        text: "\
Latency is from the moment the host asks to the moment it is answered, queueing and the host's
own overhead included, in simulated time; each kind of request has its own figures. Percentiles
come from a histogram with 64 buckets for each factor of two: a percentile is at most 1.6 %
above the true value. Mean and maximum are exact. With N requests, p99.9 means something from N
= 10 000 on or so.",
    },
    Topic {
        names: &["iops", "throughput", "bandwidth"],
        title: "Throughput: requests and bytes served per second of simulated time",
        text: "\
A closed loop (queue depth `qd`) asks for the next request when one is answered: throughput is a
result. Its depth may exceed what the device takes at a time (`path.queue`): the others wait in the
host, and the depth is always the throughput times the mean latency. An open loop (`rate`) asks at
its own moments: throughput is given, and latency is the result. If an open loop asks for more than
the device can serve, latency grows without end.",
    },
    Topic {
        names: &["erases", "wear", "wear-spread"],
        title: "Erases and their spread: how evenly blocks are worn",
        text: "\
Erases of every block since the device was made: least, mean, most, and the standard deviation.
Levelling trades extra writes (`waf`, cause: wear levelling) for a smaller spread.",
    },
    Topic {
        names: &["price"],
        title: "Price: what the media of a design cost",
        text: "\
Raw capacity times the price of the part, for the flash and for every memory that the controller
uses. Controller, board, assembly and margin are not in it. USD/GiB is by the capacity the host
sees. Every part names the source of its price; prices of today are assumptions, for comparing
designs.",
    },
    Topic {
        names: &["spare", "over-provisioning", "overprovisioning", "op", "utilization"],
        title: "Spare: raw capacity the host does not see",
        text: "\
\x20 logical units = floor(raw units x (1 - spare)),   utilization = 1 - spare

Drives are often described by raw / logical - 1 instead, their over-provisioning: `ftl.op = \"25 %\"`
is `ftl.spare = \"20 %\"`. Bad blocks, the blocks being filled and the erased reserve come out of the
spare: of a small drive they may be most of it.",
    },
    Topic {
        names: &["flush", "fsync", "fdatasync", "fua", "barrier", "commit"],
        title: "Flushes: what fsync asks of a device",
        text: "\
A program's fsync makes its file system write what is dirty and then flush the device: all writes
that were acknowledged before are safe from a power cut when the flush is. Workloads say flush=N
(after every N writes), fio jobs fsync=N, fdatasync=N and end_fsync, traces have them (FN in
blkparse, sync in an iolog); fua=yes forces each write alone.

With a volatile buffer (`ftl.buffer.in` without `backup`) a flush waits until all of it is
programmed, and the page that was being filled is padded: waf.padding and flush.p99 say what that
costs. A buffer with a battery or capacitor, or none, has nothing to wait for. `nvlab cut` checks
what survives.

A commit is all of it: from the first write since the last flush until the flush that makes it safe
is done (commit.mean, commit.p99); a write with fua=yes is a commit by itself. A flush covers what
was done when it was sent, so a host sends it when its writes are done: where a rate asks for both
at once (logger rate=, flush= with rate=), the commit is that much longer than write and flush
apart.",
    },
    Topic {
        names: &["parts", "basis", "datasheets"],
        title: "Parts: datasheets as files, every number with its source",
        text: "\
`nvlab parts list` and `nvlab parts show NAME`. In a part file a number is
  read = { value = \"100 ns\", basis = \"stated\", source = \"eNVy Fig. 12\" }
  stated    in the paper, slides or datasheet of the system itself
  cited     in another public source
  derived   follows from numbers that are stated or cited
  assumed   from memory or by judgement, not checked
A design uses one by `part = \"NAME\"` or `part = \"./FILE.toml\"`, and may change single values
beside it.",
    },
    Topic {
        names: &["designs", "extends", "set", "precedence"],
        title: "Designs: files, names, --set and what wins",
        text: "\
A design is a built-in NAME (`nvlab design list`) or a FILE.toml. What wins, first to last:
  --set KEY=VALUE     in order; ftl.clean.kind=greedy needs no quotes
  the file
  what it `extends`   a new `kind` or `part` drops the other keys of its table
  the part            of a medium
  defaults            `nvlab explain KEY` names them
`nvlab design show DESIGN` prints every value and where it comes from; `nvlab design diff A B`
compares.",
    },
    Topic {
        names: &["units", "quantities"],
        title: "Quantities: numbers with units",
        text: "\
\x20 sizes    B, KiB, MiB, GiB, TiB (of 1024); kB, MB, GB, TB (of 1000)
  times    ps, ns, us, ms, s, min, h, d
  rates    20k/s, 90/min; 7 GB/s, 64 KiB/s; 30 ns/B
  shares   80 %, 0.8, 1e-4
  prices   0.06 USD/GiB, 30 USD/MB
  counts   1_000_000, 15.5M, 1e6
One space before the unit or none. In designs `4k` of bytes is refused: write 4 KiB or 4 kB. In
workloads and fio job files `4k` is 4096, as fio has it, and a bare number is bytes. Values are
exact: what is not a whole number of bytes or picoseconds is refused.",
    },
    Topic {
        names: &["memory", "tps", "transactions", "time-split"],
        title: "Memory: designs that are loaded and stored by words",
        text: "\
A design of kind envy is a memory. It serves two kinds of workloads:
  transactions ('tpca rate=10k/s')   one processor runs them in order of arrival; each load or
                                     store begins when the one before has ended
  requests (all others)              by a RAM disk: the processor copies blocks word after word
Latency of a load or store is its own; of a transaction it counts from its arrival. A store that
finds the write buffer full waits for a flush, which may wait for cleaning.

A page goes from the buffer to flash when it is flushed. Write amplification is pages programmed
for each page flushed, so 1 + cleaning cost. The time split is of the time until the last queued
operation is done: loads and stores of the controller's time, flushes, cleaning and erases of
the time of those that work side by side (`ftl.concurrent`); the rest is idle, or waits to resume
what the host suspended.",
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
path.stages=NAME` prints the stages with the basis of each number.

\x20 schema = 1
\x20 [stack]
\x20 name       = \"mine\"        about = \"...\"   cite = \"publication, or machine, kernel and date\"
\x20 cores      = 8             optional: as many as threads
\x20 completion = \"interrupt\"   the thread leaves its core; or spin: it occupies it and polls
\x20 spin_below = \"4 KiB\"       optional, with spin: larger requests are completed by an interrupt
\x20 [[stage]]
\x20 name   = \"system call\"
\x20 when   = \"submit\"          before the device; or complete: after it
\x20 cpu    = \"0.4 us\"          processor time of the calling thread
\x20 per_4k = \"0.1 us\"          optional: more of it for each 4 KiB of data
\x20 wait   = \"2 us\"            optional: time after it without a processor, as until a thread wakes up
\x20 lock   = \"queue\"           optional: held for the processor time, and on through the next stage
\x20                              if that names it too; threads queue at it
\x20 only   = \"interrupt\"       optional: only for requests completed in this way
\x20 above_driver = true        optional: recorded programs do not pass it
\x20 spread = \"30 ns\"           optional: standard deviation of the measurement; not simulated
\x20 basis  = \"measured: ...\"   where the numbers come from

A thread does one thing at a time and needs a core; `threads=8 qd=4` of a workload are 8 threads
with 4 requests each. It keeps its core while it spins or waits for a lock (locks are spin locks),
and leaves it while it waits for anything else. Software latency is the latency without the device:
software.latency; processor time is cpu.request, cpu.spin (spinning, which overlaps with the
device) and cpu.cores; time at locks is lock.wait and lock.share. T threads with one lock serve
min(T / latency, 1 / time the lock is held) requests a second.

A recorded program (think=keep) was recorded at the driver. What the kernel took above it (system
call, file system, block layer, waking the thread) is in the recording as computing, so the program
passes only the stages without `above_driver`. One thread issues its requests: a recording does not
say which thread did. `path.overhead.host` is added whole.",
    },
    Topic {
        names: &["formats", "format", "traces"],
        title: "Formats: traces that are read, results that are written",
        text: "\
Traces, by their first lines, the ending of the file or after a colon (web.csv.gz:msr):
  msr        MSR Cambridge csv; with response times
  spc        Storage Performance Council, as in the UMass collection
  blkparse   text of blkparse; completions (C) give response times
  iolog      fio iolog, version 2 or 3
  mqsim      MQSim text
  alibaba    Alibaba block traces (2020)
  tencent    Tencent cloud block storage
  systor     SYSTOR '17: Timestamp,Response,IOType,LUN,Offset,Size; with response times
  fiu        FIU (IODedup, SRCMap): ns pid process lba sectors R|W major minor [hash]
  vscsi      CloudPhysics vscsi, binary, version 1 or 2 (with response times); only read
  cachelib   Meta's storage traces, csv: op_time,block_id,block_id_size,...; only read
  baleen     Meta's storage traces of Baleen: block_id io_offset io_size op_time ...; only read.
             Both name blocks: each gets a place on the device when it is first accessed
  table      any text table, by the names of its columns (below)
  parquet    a table: time_UNIT (s, ms, us, ns, ps; or a timestamp `time`), op (read, write, trim,
             flush), offset_bytes or offset_sectors, length_bytes or length_sectors; optionally
             volume, fua, response_UNIT; other columns are left aside. A folder of such files is one
             trace: a file or folder volume=NAME for each volume (trace split --extension parquet)
  nvt        our own column file: what `nvlab trace convert` makes of the others

Tables: -w 'my.csv columns=time_s,op,offset_bytes,length_bytes'
  time_UNIT (s, ms, us, ns, ps, 100ns), op, offset_UNIT, length_UNIT (bytes, sectors of 512 B, or a
  size as 4KiB); optionally volume, fua, response_UNIT; - is left aside, as are further columns
  separator=comma|tab|semicolon|bar|space or one character (default: what the first line has)
  header=yes|no        (default: yes if no cell for a number begins like one); # begins a comment
  read=0 write=1       words for operations besides the usual ones; several with commas; trim, flush
Without columns= they are those that the header names, exactly or by usual words (timestamp, iotype,
lba, size_bytes, latency_us); what was made of it is shown; what may mean two things is refused, as
is a unit with two meanings (KB, pages).
Lines such as `1 0 48 W` (SimpleSSD): columns=time_us,offset_sectors,length_sectors,op

Results on stdout, by --format: human (tables), json (one document), jsonl (one per line), csv,
md. Numbers in json are in base units with the unit in the name; `nvlab report --schema` prints the
JSON Schema (docs/results.schema.json). Columns of csv and of the tables of sweeps have the names of
metrics with their units, which -m takes too, and so has every axis: ftl.unit_bytes, ftl.spare.",
    },
    Topic {
        names: &["live-page", "live", "http"],
        title: "The live page: watching a device or a run, and changing it",
        text: "\
\x20 nvlab serve ssd-tlc --nbd --http 127.0.0.1:7070     or: run ssd-tlc -w 'zipf qd=8' --http ...

The address printed ends with a token, with which the page can pause, resume and pull the plug, and
set speed and rate of a run, which begins in real time; unchanged, it has the result of any run.
  GET /events     two a second, each one JSON object; GET /metrics: for Prometheus
  POST /cut, /pause, /resume, /rate?per_s=N, /speed?times=N (or none), with the header X-Nvlab-Token",
    },
    Topic {
        names: &["exit-codes", "exit-code", "exit", "status"],
        title: "Exit codes",
        text: "\
\x20 0    done, every check held
  1    done, but an --assert failed, a claim differs, or a device failed a request
  2    wrong command line or input file; nothing was run
  3    done, but some points of many have no result; which and why is printed
  4    this machine cannot do it; the message says what would help
  70   a fault of nvlab
  130  interrupted (143: terminated); finished runs are kept",
    },
];
