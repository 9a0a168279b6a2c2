"""The steady state by way of a coarse twin against the one that every write leads to: write amplification and p99 of writes of the
five capacities after it, for all cleaners and streams, and distributions of addresses that a twin can draw. `make check-twin`;
arguments: the program, then words that the names of cases must have.

Shorter runs say less: under some cleaners write amplification rises and falls by 2 % over a capacity, for good, and with streams of
hot and cold data the written devices still rise by 1 %."""

import concurrent.futures
import itertools
import json
import os
import subprocess
import sys
import tempfile
from statistics import mean

# 1.2 M units of 4 KiB: the smallest size that a twin is made for, so that all can be written in seconds.
SMALL = ["media.tlc.blocks=145", "media.tlc.pages=144", "ftl.map.checkpoint=1 GiB", "ftl.buffer.size=2 MiB"]
CLEANERS = ["greedy", "fifo", "cost-benefit", "d-choices", "windowed-greedy"]
# The design, and what is set besides.
DESIGNS = {
    **{cleaner: ["ssd-tlc", f"ftl.clean.kind={cleaner}"] for cleaner in CLEANERS},
    "spare 28 %": ["ssd-tlc", "ftl.spare=28 %", "media.tlc.blocks=180"],
    # With 145 blocks a die, one erased block more or less is an eighth of the write amplification, and how many a die keeps depends
    # for good on how it was filled, whichever way it came to its steady state.
    "one stream": ["ssd-tlc", "ftl.streams=one", "media.tlc.blocks=290"],
    "hot and cold streams": ["ssd-tlc", "ftl.streams=hot-cold-relocated", "ftl.buffer.size=4 MiB"],
    "levelling at 4 cycles": ["ssd-tlc", "ftl.wear.threshold=4"],
    "SLC cache": ["tlc-pslc", "media.slc.blocks=145", "media.slc.pages=48"],
    "SLC cache, folded": ["tlc-pslc", "media.slc.blocks=145", "media.slc.pages=48", "ftl.cache.when_full=fold"],
}
WORKLOADS = {
    "uniform": "uniform rw=randwrite bs=4KiB qd=32",
    "zipf 70/30": "zipf rw=randrw read=70% bs=8KiB qd=32",
    "hot 20/80": "hotcold hot=20/80 rw=randwrite bs=4KiB qd=32",
    "self-similar": "selfsimilar rw=randwrite bs=4KiB qd=32",
    "JESD219": "jesd219 qd=32",
}
SEEDS = range(4)
MOST = 0.01


def run(program: str, folder: str, design: str, workload: str, seed: int, twin: str) -> dict:
    base, *sets = DESIGNS[design]
    command = [program, "run", base, "-w", WORKLOADS[workload], "--until", "5 x capacity", "--json", "-q", "--no-cache"]
    command += ["-o", folder, "--precondition", f"steady,twin={twin},seed={seed}", "--seed", str(seed + 1)]
    command += [word for setting in [*SMALL, *sets] for word in ("-s", setting)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    program, *words = sys.argv[1:]
    cases = [case for case in itertools.product(DESIGNS, WORKLOADS) if all(word in " ".join(case) for word in words)]
    worst = 0.0
    print(f"{'':36}{'twin':>6}{'waf':>9}{'seeds':>7}{'by twin':>9}{'p99 ms':>9}{'seeds':>7}{'by twin':>9}")
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = {
            case: [[pool.submit(run, program, folder, *case, seed, twin) for seed in SEEDS] for twin in ("no", "yes")]
            for case in cases
        }
        for case, both in jobs.items():
            written, twin = ([job.result() for job in runs] for runs in both)
            waf = [[result["write_amplification"]["total"] for result in results] for results in (written, twin)]
            p99 = [[result["write"]["latency"]["p99_ns"] / 1e6 for result in results] for results in (written, twin)]
            worst = max(worst, abs(mean(waf[1]) / mean(waf[0]) - 1))
            columns = "".join(
                f"{mean(of[0]):>9.3f}{(max(of[0]) - min(of[0])) / mean(of[0]):>7.1%}{mean(of[1]) / mean(of[0]) - 1:>+9.2%}"
                for of in (waf, p99)
            )
            print(f"{', '.join(case):36}{twin[0]['precondition']['twin_units']:>6}{columns}", flush=True)
    print(f"write amplification differs by {worst:.2%} at most; up to {MOST:.0%} is allowed")
    sys.exit(worst > MOST)


if __name__ == "__main__":
    main()
