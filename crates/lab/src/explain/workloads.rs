//! The article on workloads.

use super::topic::Topic;

/// What `-w` takes.
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
    title: "Workloads: what is asked of a device",
    text: "\
-w takes a generator, a fio job file or a trace. Several -w (or one with ' + ' between them)
run together on one device, each with its own depth or rate, and so do the jobs of a file.

Generators: 'KIND key=value ...'
  uniform                      evenly over the device
  shuffled                     every block once per pass, in random order
  sequential                   one block after another
  zipf        theta=0.99       in proportion to 1 / rank^theta
  hotcold     hot=20/80        20 % of the space gets 80 % of the accesses
  selfsimilar h=0.2            the same within the hot part, and so on
  jesd219                      JEDEC's enterprise endurance workload: tbw and dwpd as in data sheets
with  rw=randwrite read=70% trim=5% bs=4KiB qd=32 threads=4 rate=20k/s span=1GiB offset=10% flush=N
      fua=yes align=4KiB until=60s; 4k is 4 KiB, a bare size is bytes; qd is that of each thread.
      Threads matter to designs with stages (`nvlab explain stacks`): to others, threads=4 qd=8 is
      the same as qd=32.

Any of these and of those below that request blocks: used=300GB trimmed=yes|no
  300 GB of the device are in use, its first, and all requests go there (shares such as span=30% are
  of them). trimmed=yes: the rest holds no data, as on a drive whose file system discards what it
  deletes; trimmed=no: it is full of stale data that the drive must keep. Random writes of 8 KiB to
  30 % of ssd-tlc have a write amplification of 1.04 and 1.94.

Transactions on a memory: 'tpca key=value ...'
  branches=155 accounts=100k record=100B fanout=32 spread-hot=off reads=balance home=off history=off
  rate=10k/s (without it: one after the other) arrivals=poisson until=60s

Single words of a memory: 'words key=value ...', as the cleaning policies of eNVy are compared
  hot=10/90 load=70% (share of loads) page=256B (what is drawn) word=8B span=SIZE rate=10k/s
  arrivals=poisson until=1e6accesses

Transactions on recoverable memory, for designs of kind rvm
  debit-credit style=c++|sidney accounts=100k cpu=TIME (of each) threads=1 (commit together) or
  rate=100/s until=50ktransactions
  compiler files=38 record=15KiB cpu=670ms passes=1      the shape of a compiler on a heap

A database: 'tpcc key=value ...' makes the page requests of TPC-C behind a buffer pool
  warehouses=80 pool=400MiB page=4KiB mix=new-order|full span=SIZE (it grows; default: the device)
  checkpoint=off|N (write all changed pages every N transactions) log=off|on (forced at commit)
  warm-up=full|off|N qd=1 rate=1k/s (of transactions) until=1e6 transactions

Clients of a FAT volume: 'iozone key=value ...' makes what a FAT implementation asks for one
file, and what it writes
  mode=write|rewrite|read|reread|random-read|random-write record=4KiB file=16MiB
  fat=12|16|32 (default: by size) cluster=4KiB fill=50% (clusters in use) cache=256KiB (of sectors)
  sync=record|N|close (when FATs and directories are written: N records) span=SIZE
It prepares its volume itself, unmeasured: use --precondition fresh, or full for a device that
was in use.

'logger key=value ...' appends small records to files there and forces each: the sector of the data,
the directory entry, and the FATs when a cluster is full, then a flush
  record=200B rate=1/s (without it: one after the other) file=1MiB (then the next is begun) files=8
  (then the oldest is deleted) until=100k records|1d; fat, cluster=32KiB, fill, cache, span as above

fio job files: db.fio for all its jobs, or db.fio:SECTION for one; k is 1024, as in fio. Depth,
rates, pauses and the order of places are fio's: rate and rate_iops are limits in front of a closed
loop of iodepth. What does not matter to a simulated device is left out, with a note; what would
change the load and is not done here is refused by name.

Traces: FILE[:FORMAT], plain, .gz or .zst (see `nvlab explain formats`), with
  scale-time=0.5 first=1h loop=3 copies=4 compact wrap align=4KiB qd=32 volume=NAME
  skip-bad=10: so many lines that fit no request are left out
  columns=time_s,op,offset_bytes,length_bytes: any text table (nvlab explain formats)
  clip-trims: with compact, what is only trimmed is squeezed out too: a mkfs discards all there is
  think=keep: the program behind the trace, on this device. What it computed between an answer and
    the next request stays as recorded; a request waits for all that had been answered when it was
    asked. Its run time is the metric program.time. It needs response times, which `nvlab serve
    --record FILE.nvt`, msr, systor, vscsi and blkparse have. Threads that do not wait for each
    other are tied together: a slower device would do better than is said.
builtin:NAME instead of FILE: the programs of traces/README.md (raw, file, bdb-btree, bdb-hash,
  pg-query, pg-scan, matmul, is), such as 'builtin:raw think=keep'.
heap:STORE-WORKLOAD: 2,000 operations of a program that keeps objects, each line of 64 B that it
  opens or writes a request, such as 'heap:durable-sps think=keep' on ddr-scm,ftl.unit=64B. STORE:
  base, pointers, transactions, durable (nvheap, counted while it runs), unsafe, berkeley-db
  (recorded); WORKLOAD: sps, b-tree, hash, six-degrees.",
};
