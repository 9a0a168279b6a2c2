//! The article on workloads.

use super::topic::Topic;

/// The values of `-w`.
pub const TOPIC: Topic = Topic {
    names: &[
        "workloads",
        "workload",
        "generators",
        "uniform",
        "shuffled",
        "sequential",
        "zipf",
        "hotcold",
        "selfsimilar",
        "jesd219",
        "tpca",
        "words",
        "debit-credit",
        "compiler",
        "tpcc",
        "iozone",
        "logger",
        "fio",
        "heap",
    ],
    title: "Workloads: the requests a device receives",
    text: "\
-w accepts a generator, a fio job file or a trace. Several -w (or one with ' + ' between them)
run at the same time on one device, each with its own depth or rate; so do the jobs of a file.

Generators: 'KIND key=value ...'
  uniform                      uniform over the device
  shuffled                     every block once per pass, in random order
  sequential                   in order of addresses
  zipf        theta=0.99       in proportion to 1 / rank^theta
  hotcold     hot=20/80        80 % of the accesses go to 20 % of the space
  selfsimilar h=0.2            the same recursively within the hot part
  jesd219                      JEDEC's enterprise endurance workload: tbw and dwpd as in data sheets
  zones       open=1 append    at the write pointers of zones (`nvlab explain zones`)
with  rw=randwrite read=70% trim=5% bs=4KiB qd=32 threads=4 rate=20k/s span=1GiB offset=10% flush=N
      fua=yes align=4KiB until=60s; 4k is 4 KiB, a bare size is bytes; qd is per thread.
      Threads matter to designs with stages (`nvlab explain stacks`); for others, threads=4 qd=8 is
      the same as qd=32.

All workloads of block requests, here and below: used=300GB trimmed=yes|no
  The first 300 GB of the device are in use and get all requests (shares such as span=30% refer to
  them). trimmed=yes: the rest holds no data, as on a drive whose file system discards what it
  deletes. trimmed=no: it is full of stale data that the drive must keep. Random writes of 8 KiB to
  30 % of ssd-tlc have a write amplification of 1.04 and 1.94, respectively.

Transactions on a memory: 'tpca key=value ...'
  branches=155 accounts=100k record=100B fanout=32 spread-hot=off reads=balance home=off history=off
  rate=10k/s (default: back to back) arrivals=poisson until=60s

Single words of a memory: 'words key=value ...', used to compare the cleaning policies of eNVy
  hot=10/90 load=70% (share of loads) page=256B (unit of the draw) word=8B span=SIZE rate=10k/s
  arrivals=poisson until=1e6accesses

Transactions on recoverable memory, for designs of kind rvm
  debit-credit style=c++|sidney accounts=100k cpu=TIME (each) threads=1 (group commit) or
  rate=100/s until=50ktransactions
  compiler files=38 record=15KiB cpu=670ms passes=1      a model of a compiler that uses a heap

A database: 'tpcc key=value ...' makes the page requests of TPC-C below a buffer pool
  warehouses=80 pool=400MiB page=4KiB mix=new-order|full span=SIZE (it grows; default: the device)
  checkpoint=off|N (write all dirty pages every N transactions) log=off|on (forced at commit)
  warm-up=full|off|N qd=1 rate=1k/s (of transactions) until=1e6 transactions

Clients of a FAT volume: 'iozone key=value ...' makes the requests, with data, of a FAT
implementation for one file
  mode=write|rewrite|read|reread|random-read|random-write record=4KiB file=16MiB
  fat=12|16|32 (default: by size) cluster=4KiB fill=50% (clusters in use) cache=256KiB (of sectors)
  sync=record|N|close (when FATs and directories are written; N: every N records) span=SIZE
  It formats its volume itself, unmeasured: use --precondition fresh, or full for a device that
  was in use.

'logger key=value ...' appends small records to files on such a volume and forces each one: the data
  sector, the directory entry, the FATs when a cluster is full, then a flush
  record=200B rate=1/s (default: back to back) file=1MiB (then the next file is started) files=8
  (then the oldest is deleted) until=100k records|1d; fat, cluster=32KiB, fill, cache, span as above

fio job files: db.fio for all its jobs, or db.fio:SECTION for one; k is 1024, as in fio. Depth,
rates, pauses and the order of addresses follow fio: rate and rate_iops limit a closed loop of
iodepth. Options without effect on a simulated device are ignored with a note; options that would
change the load but are not supported are rejected by name.

Traces: FILE[:FORMAT], plain, .gz or .zst (see `nvlab explain formats`), with
  scale-time=0.5 first=1h loop=3 copies=4 compact wrap align=4KiB qd=32 volume=NAME
  skip-bad=10: skip up to 10 lines that are not requests
  columns=time_s,op,offset_bytes,length_bytes: any text table (nvlab explain formats)
  clip-trims: with compact, also remove ranges that are only trimmed: a mkfs discards everything
  think=keep: run the recorded program on this device. Its computing time between a completion and
    the next request stays as recorded; a request waits for all that had completed before it was
    issued. Its run time is the metric program.time. It needs response times, which `nvlab serve
    --record FILE.nvt`, msr, systor, vscsi and blkparse have. Threads that do not wait for each
    other are coupled by this: a slower device would do better than reported.
builtin:NAME instead of FILE: the programs of traces/README.md (raw, file, bdb-btree, bdb-hash,
  pg-query, pg-scan, matmul, is), e.g. 'builtin:raw think=keep'.
heap:STORE-WORKLOAD: 2,000 operations of a program that keeps objects; every 64 B line it opens or
  writes is a request, e.g. 'heap:durable-sps think=keep' on ddr-scm,ftl.unit=64B. STORE: base,
  pointers, transactions, durable (nvheap, counted while it runs), unsafe, berkeley-db (recorded);
  WORKLOAD: sps, b-tree, hash, six-degrees.",
};
