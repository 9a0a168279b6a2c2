"""Writes the trace of a made-up fleet in Alibaba's format: `fleet.py FILE [--volumes N] [--requests N] [--seed N]`.

Volumes differ as those of a cloud do: a few have most of the requests (log-normal, sigma 1.5), most of them write more than they
read, the written addresses are skewed to different degrees, and some volumes write sequentially. The numbers are this script's;
nothing is taken from a recorded trace.
"""

import argparse

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument("--volumes", type=int, default=1000)
    parser.add_argument("--requests", type=int, default=10_000_000)
    parser.add_argument("--hours", type=float, default=24.0)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    rng = np.random.default_rng(asked.seed)
    shares = rng.lognormal(0, 1.5, asked.volumes)
    counts = np.maximum(100, asked.requests * shares / shares.sum()).astype(int)
    volumes = [volume(rng, count, asked.hours) for count in counts]
    columns = {name: np.concatenate([one[name] for one in volumes]) for name in volumes[0]}
    columns = {"device_id": np.repeat(np.arange(asked.volumes), counts), **columns}
    order = np.argsort(columns["timestamp"], kind="stable")
    table = pa.table({name: column[order] for name, column in columns.items()})
    csv.write_csv(table, asked.file, csv.WriteOptions(include_header=False, quoting_style="none"))
    print(f"{len(order)} requests of {asked.volumes} volumes in {asked.file}")


if __name__ == "__main__":
    main()
