//! The articles on searches: from figures to a design, and from requirements to a design.

use super::topic::Topic;

/// `nvlab fit`.
pub const FIT: Topic = Topic {
    names: &["fit", "figures", "priors", "held-out", "probe"],
    title: "From what is said of a drive to its design: figures, intervals, residuals",
    text: "\
\x20 nvlab design new --figures mine.toml      a file of figures to fill in
\x20 nvlab fit mine.toml -o drive.toml         the design; nvlab fit mine.toml --json for programs
\x20 nvlab fit mine.toml fio-*.json --state steady
                                            with what fio measured (--output-format=json)
\x20 nvlab probe /dev/nvme0n1; nvlab fit mine.toml nvme0n1.probe.json
                                            with what nvlab has fio measure

\x20 [drive]    name, capacity (\"1 TB\", or a list: siblings share flash and controller), interface
             (\"SATA\", \"PCIe 3.0 x4\"), class (client | data-centre), cells (TLC | QLC), layers,
             dies
\x20 [known]    numbers that are known, by their names below: read = \"50 us\" or \"45 us .. 60 us\"
\x20 [[figure]] what = sequential read | sequential write | random read | random write |
             endurance | cache; value = \"600k IOPS\", \"3.5 GB/s\", \"85 us\", \"600 TB\",
             \"0.9 DWPD\"; capacity, bs, qd, state = fresh | cache | after cache | full | steady,
             load = jesd219 | random | sequential (of endurance), years (of DWPD), tolerance
             (default 5 %), source
\x20 [[measured]] file, beside this one: fio's JSON or latency log, a probe, or a table of SNIA's
             test; capacity, state, tolerance, qd (where the file does not say it)

Every number that a design leaves open has a prior, an interval that nine of ten drives of its
generation, class and link lie in (parts/priors): read, program, erase, cycles, transfer, slc
program, die, planes, independent, channels, extra, reserve, programs, buffer, cache, link, link of
writes, command, command of writes, host, firmware. The fit is the most probable drive: closed forms
place the search, simulations correct them until nothing moves. Behind each number stands where nine
of ten drives that fit have it; \"prior only\" says that no figure depends on it. A figure that
physics or the others contradict is said. If two kinds of flash explain the figures as well, both
designs are given. \"measure next\" names jobs on which drives that fit differ most, each about
another number. --html FILE is a page.

Of fio's jobs, those in a closed loop with requests of one size, at random or in order, reads,
writes or both, are figures: their rates are fitted; their mean and 99th percentile are shown beside
those simulated. Any other job is run with the design that was found and stands in a table of its
own; nothing is fitted to it. fio does not say how the drive was prepared: without a state, what is
assumed of writes is said below the tables. A latency log (write_lat_log) is a figure: how many
requests were in flight follows from Little's law. Of SNIA's test, the matrix of IOPS by block size
and mix is read as text, CSV or Markdown (say qd), and what `nvlab pts` prints.

nvlab probe TARGET (a block device, a file, an NBD address) has fio measure patterns that each
depend on few numbers: latency against size, a sweep of depths, streams, strides that collide; with
--write SIZE --state STATE also writes, of so many bytes in all, after the target's name was typed:
a burst, of an empty drive until its cache is full, and again after a rest, then streams, random
writes, trims, flushes. Reads of what was never written are answered without flash: fill a new drive
first.

Figures are simulated on a part of the drive that measures the same: smaller blocks where nothing
is cleaned, a few of the dies where it is. Runs are kept: the same command goes on after an
interruption. --held-out predicts each figure from all others: what a fit is worth.",
};

/// `nvlab choose`.
pub const CHOOSE: Topic = Topic {
    names: &["choose", "requirements", "needs"],
    title: "The best design that meets requirements: keys that are free, needs, goals",
    text: "\
\x20 nvlab choose DESIGN --free KEY=VALUES ... -w WORKLOAD --need EXPR ... --best METRIC ...

\x20 VALUES  LO..HI (16 values), LO..HI:STEP, LO..HI*FACTOR, V1,V2,... or * for all names of a key
\x20 EXPR    as in --assert: 'write.p99 <= 2ms', 'life >= 5y', 'waf < 2'
\x20 METRIC  as in -m; the better direction is known. Several: the designs of which none is
          better in each (the Pareto front), in the table and, with --html, in a picture

A key that belongs to one kind of a table is free in designs of that kind only. Designs that cannot
be are left out before anything is run; so is what a price alone rules out. The search runs designs
that cover the space, learns what each run tells of the others (a Gaussian process), and runs what
promises most: how much better it may be, times the probability that it meets all. It ends when
nothing promises a twentieth of a percent more, or after --runs.

Said of the best: what binds (needs that it meets by less than 5 %, keys at the end of their range),
and what each need costs: how much better the first goal could be without it, after some more runs
that waive it. Values of a single run are known as exactly as its own interval says: `nvlab compare
-n 5` of the best and the next tells more. Exit status 1: no design meets all needs.",
};
