"""How nvlab scales: `make scale`, or `scale.py [--volumes N] [--requests N]` where the package is installed.

1. A fleet: the trace of made-up volumes in Alibaba's format is split by volume, and every volume is run on a device.
2. A sweep of many points: on one core and on all of them, on one worker of Dask and on two.

The volumes differ as those of a cloud do: a few have most of the requests (log-normal, sigma 1.5), most of them write more than they
read, the written addresses are skewed to different degrees, and some volumes write sequentially. The numbers are this script's;
nothing is taken from a recorded trace.
"""

import argparse
import importlib
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv

UNIT_BYTES = 4096


def volume(rng: np.random.Generator, requests: int, hours: float) -> dict[str, np.ndarray]:
    """The requests of one volume."""
    span = int(rng.choice([1, 2, 3], p=[0.4, 0.4, 0.2]) * (1 << 30) * 0.8 // UNIT_BYTES)
    skew = rng.uniform(1.0, 6.0)
    writes = rng.random(requests) < rng.beta(4, 2)
    units = rng.choice([1, 2, 4, 8, 16], requests, p=[0.5, 0.15, 0.15, 0.1, 0.1])
    start = (span * rng.random(requests) ** skew).astype(np.int64)
    if rng.random() < 0.2:
        ends = np.cumsum(units)
        start[writes] = (ends - units)[writes] % (span - 16)
    # Neighbours in popularity are not neighbours in place.
    start = np.minimum(start * 7919 % span, span - units)
    return {
        "opcode": np.where(writes, "W", "R"),
        "offset": start * UNIT_BYTES,
        "length": units * UNIT_BYTES,
        "timestamp": np.sort(rng.random(requests) * hours * 3600e6).astype(np.int64),
    }


def write_fleet(file: Path, volumes: int, requests: int, hours: float, seed: int) -> int:
    """Writes a fleet's trace; returns its requests."""
    rng = np.random.default_rng(seed)
    shares = rng.lognormal(0, 1.5, volumes)
    counts = np.maximum(100, requests * shares / shares.sum()).astype(int)
    parts = [volume(rng, count, hours) for count in counts]
    columns = {name: np.concatenate([one[name] for one in parts]) for name in parts[0]}
    columns = {"device_id": np.repeat(np.arange(volumes), counts), **columns}
    order = np.argsort(columns["timestamp"], kind="stable")
    table = pa.table({name: column[order] for name, column in columns.items()})
    csv.write_csv(table, file, csv.WriteOptions(include_header=False, quoting_style="none"))
    return len(order)


@dataclass
class Cost:
    """What a command took."""

    wall_s: float
    cpu_s: float
    peak_mib: float


def nvlab(*arguments: str | Path) -> Cost:
    """Runs the command to its end."""
    command = [sys.executable, "-m", "nvlab", *map(os.fspath, arguments)]
    began = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    said = child.stderr.read() if child.stderr else b""
    _, status, used = os.wait4(child.pid, 0)
    if status != 0:
        sys.exit(f"{' '.join(command)} failed:\n{said.decode()}")
    return Cost(time.perf_counter() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def fleet(folder: Path, volumes: int, requests: int) -> None:
    """Splits and runs a fleet."""
    trace, split = folder / "fleet.csv", folder / "split"
    # In another process: a child begins with the memory of its parent in its account.
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        count = pool.apply(write_fleet, (trace, volumes, requests, 24.0, 1))
    info = nvlab("trace", "info", f"{trace}:alibaba")
    parted = nvlab("trace", "split", f"{trace}:alibaba", split, "--extension", "parquet")
    kept = ["-o", folder / "out", "--cache", folder / "cache"]
    swept = nvlab("sweep", "bench-4g", "-w", f"{split}/volume=* compact", "--precondition", "full", *kept)
    print(f"a fleet of {volumes} volumes, {count / 1e6:.1f} M requests, {trace.stat().st_size / 1e6:.0f} MB of text")
    for name, cost in [("read it and say what is in it", info), ("split it by volume", parted), ("run every volume", swept)]:
        rates = f"{count / cost.wall_s / 1e6:5.2f} M/s, {count / cost.cpu_s / 1e6:5.2f} M a CPU-second"
        print(f"  {name:30} {cost.wall_s:6.1f} s  {cost.cpu_s:6.1f} CPU-s  {cost.peak_mib:6.0f} MiB  {rates}")


#: 100 designs under two seeds, all of the same length.
AXES = ["-p", "ftl.spare=10%..59.5%:0.5%", "-p", "seed=1,2"]


def sweep(folder: Path) -> None:
    """Runs a sweep on more and more cores."""
    what = ["sweep", "bench-4g", "-w", "zipf qd=8", "--until", "1.6e6 io", "--precondition", "full", "-m", "waf", *AXES]
    cores = len(os.sched_getaffinity(0))

    def once(name: str, *how: str | Path) -> Cost:
        # Prepared devices are not kept: every point does all of its work.
        return nvlab("--no-cache", *what, "-o", folder / name, *how)

    one, all_ = once("one", "-j", "1"), once("all", "-j", str(cores))
    print(f"a sweep of 200 points: {one.wall_s:.1f} s on one core, {all_.wall_s:.1f} s on {cores}: "
          f"{one.wall_s / all_.wall_s / cores:.2f} a core")
    alone, both = (on_workers(once, workers) for workers in (1, 2))
    print(f"  on Dask: {alone.wall_s:.1f} s on one worker of one thread, {both.wall_s:.1f} s on two: {alone.wall_s / both.wall_s / 2:.2f} a worker")
    tables = {(folder / name / "sweep-bench-4g.csv").read_bytes() for name in ["one", "all", "dask-1", "dask-2"]}
    print(f"  the four tables are {'equal' if len(tables) == 1 else 'DIFFERENT'}")


def on_workers(once: Callable[..., Cost], count: int) -> Cost:
    """The sweep on a cluster with so many workers of one thread each."""
    from distributed import Client, LocalCluster

    with LocalCluster(n_workers=count, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        # A worker imports the package before its first point.
        client.run(importlib.import_module, "nvlab._dask")
        return once(f"dask-{count}", "--on", f"dask:{cluster.scheduler_address}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--volumes", type=int, default=1000)
    parser.add_argument("--requests", type=int, default=10_000_000)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="nvlab-scale-") as folder:
        fleet(Path(folder), asked.volumes, asked.requests)
        sweep(Path(folder))


if __name__ == "__main__":
    main()
