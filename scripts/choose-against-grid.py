"""`nv.choose` against the whole grid: 2,000 designs, of which it may run a twentieth. Two questions are asked of the same grid, one whose
goal is known without a run and whose needs are not, and one whose goal is measured. Printed is how far the answer is from the best of
the grid, for several seeds. The grid takes a quarter of an hour of processor time and is kept in the folder that is given (runs/choose)."""

import sys
from typing import Any

import nvlab as nv

# Dies of 64 MiB, four on each of up to eight channels: a run takes a quarter of a second.
DRIVE = nv.design("bench-4g-8x4").with_({"media.nand.blocks": 64})
LOAD = "zipf read=50% bs=4KiB qd=16"
SPACE = {
    "ftl.spare": nv.arange("8 %", "46 %", "2 %"),
    "ftl.clean.kind": ["greedy", "fifo", "cost-benefit", "d-choices", "windowed-greedy"],
    "ftl.free_blocks_min": [2, 3, 4, 6, 8],
    "array.channels": [1, 2, 4, 8],
}
#: Goal, and what must hold.
QUESTIONS = [
    ("capacity", ["write.p99 <= 2.5 ms", "waf <= 3"]),
    ("read.p99", ["capacity >= 1 GB", "waf <= 4"]),
]
RUNS, SEEDS = 100, 5
# What is compared is the search: how a design is prepared does not matter to it, and this is quick.
RUN: dict[str, Any] = {"until": "2 x capacity", "precondition": "full"}


def main() -> None:
    out = sys.argv[1] if len(sys.argv) > 1 else "runs/choose"
    grid = nv.sweep(DRIVE, SPACE, LOAD, **RUN, out=out)
    print(f"grid: {len(grid)} designs")
    is_near = True
    for goal, needs in QUESTIONS:
        metric = nv.metrics()[goal]
        rows = [row for row in grid if row[metric.column] is not None and all(met(row, need) for need in needs)]
        best = (max if metric.better == "more" else min)(row[metric.column] for row in rows)
        print(f"{goal} with {', '.join(needs)}: {len(rows)} designs meet them, the best has {best:.6g}")
        for seed in range(1, SEEDS + 1):
            found = nv.choose(DRIVE, SPACE, LOAD, goal, needs, runs=RUNS, **RUN, seed=seed, out=out)
            # As the grid has it, whose seed is 1.
            value = nv.run(found.best[0], LOAD, **RUN, out=out).metrics[goal]
            off = abs(value / best - 1)
            print(f"    seed {seed}: {value:.6g} with {found.runs} runs, {100 * off:.2f} % from the best")
            is_near &= off <= 0.02 and found.runs <= len(grid) / 20
    sys.exit(0 if is_near else "the best was missed by more than 2 %, or with too many runs")


def met(row: Any, need: str) -> bool:
    name, sign, limit = need.split(" ", 2)
    value, bound = row[nv.metrics()[name].column], base(limit)
    return value is not None and (value <= bound if sign == "<=" else value >= bound)


def base(text: str) -> float:
    """A limit in the unit of its column: times are in nanoseconds."""
    number, _, unit = text.partition(" ")
    return float(number) * {"": 1, "ms": 1e6, "GB": 1e9}[unit]


if __name__ == "__main__":
    main()
