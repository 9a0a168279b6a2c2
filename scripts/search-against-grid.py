"""A search of a database drive against the whole grid: how much of the front it finds, with how many of the runs. The question is that
of docs/tutorials/which-drive-to-buy.md, which quotes what this prints."""

import resource
import time

import nvlab as nv

# The drive `ssd-tlc` with a 1/60 of its blocks' pages: dies, spare space and rates are those of the large one.
SMALL = {"media.tlc.blocks": 128, "media.tlc.pages": 72, "ftl.map.checkpoint": "1 GiB", "ftl.free_blocks_min": 2}
DRIVE = nv.design("ssd-tlc").with_(SMALL)
LOAD = "zipf read=70% bs=8KiB rate=20k/s"
SPACE = {
    "ftl.spare": nv.arange("10 %", "42 %", "4 %"),
    "ftl.clean.kind": ["greedy", "fifo", "cost-benefit", "d-choices"],
    "ftl.buffer.size": ["4 MiB", "16 MiB", "64 MiB"],
}
OBJECTIVES = ["price.gib", "lifetime.dwpd", "read.p99"]
RUNS = 27


def volume(rows: list[dict], worst: list[float]) -> float:
    """The part of the space of objectives that some of these designs are at least as good as: what a front covers."""
    price, life, p99 = (nv.metrics()[name].column for name in OBJECTIVES)
    edges = [sorted({row[column] for row in rows} | {edge}) for column, edge in zip((price, p99), worst[::2], strict=True)]
    covered = 0.0
    for left, right in zip(edges[0], edges[0][1:], strict=False):
        for low, high in zip(edges[1], edges[1][1:], strict=False):
            lives = [row[life] for row in rows if row[price] <= left and row[p99] <= low]
            covered += (right - left) * (high - low) * max(0.0, max(lives, default=0.0) - worst[1])
    return covered


def cpu_s() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime


def main() -> None:
    began, cpu = time.monotonic(), cpu_s()
    found = nv.search(DRIVE, SPACE, LOAD, OBJECTIVES, runs=RUNS, until="1 x capacity", cache=False)
    print(f"search: {len(found)} of {found.points} points, {cpu_s() - cpu:.0f} CPU-s, {time.monotonic() - began:.0f} s")
    began, cpu = time.monotonic(), cpu_s()
    grid = nv.sweep(DRIVE, SPACE, LOAD, until="1 x capacity", cache=False)
    print(f"grid: {len(grid)} points, {cpu_s() - cpu:.0f} CPU-s, {time.monotonic() - began:.0f} s; {grid.about.split('; ')[0]}")
    rows = list(grid)
    columns = [nv.metrics()[name].column for name in OBJECTIVES]
    front = [rows[at] for at in grid.pareto(*OBJECTIVES)]
    worst = [max(row[columns[0]] for row in rows), min(row[columns[1]] for row in rows), max(row[columns[2]] for row in rows)]
    share = volume(list(found.front), worst) / volume(front, worst)
    print(f"front of the grid: {len(front)} designs; of the search: {len(found.front)}, which cover {100 * share:.1f} % of it")
    for name, all_rows in (("grid", front), ("search", list(found.front))):
        kinds = sorted({row["ftl.clean.kind"] for row in all_rows})
        print(f"cleaners on the front of the {name}: {', '.join(kinds)}")
    assert share > 0.9


if __name__ == "__main__":
    main()
