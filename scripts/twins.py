#!/usr/bin/env python3
"""Hidden twins: designs drawn at random are served in real time, probed as drives, and fitted without being looked at. Printed are the
numbers that were found beside those that were drawn, with the intervals of the fit, and fio jobs that the fit has not seen, as fio
measured them on the served design and as the fitted design predicts them.

What is measured is kept and not measured again. It needs fio with its engine `nbd`, and a machine that does nothing else: what other
programs take away is measured as the drive's. A socket carries some 50,000 requests a second, so a twin takes 15 us and more for a
command. With --slow N it is served N times slower than it is and takes a tenth of that, and what fio says is divided by N. With
--simulated nothing is served: nvlab runs fio's jobs on the twin, which shows what the fit is worth where the measurement is exact. A twin
takes two to four minutes.
"""

import argparse
import json
import math
import random
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

EACH = "2s"
JOB_S = 4
#: Bounds of the predictions: throughput and mean latency, 99th percentile, numbers.
NEAR, NEAR_P99 = 0.15, 0.25
#: Jobs that no probe makes.
JOBS = {
    "reads-8": "rw=randread bs=4k iodepth=8",
    "reads-24": "rw=randread bs=4k iodepth=24",
    "reads-32k": "rw=randread bs=32k iodepth=4",
    "skewed": "rw=randread bs=4k iodepth=16 random_distribution=zipf:1.1",
    "writes-8": "rw=randwrite bs=4k iodepth=8",
    "writes-16k": "rw=randwrite bs=16k iodepth=4",
    "half": "rw=randrw rwmixread=50 bs=4k iodepth=16",
    "mostly-reads": "rw=randrw rwmixread=90 bs=8k iodepth=8",
}


#: What a probe measures, for --simulated: its patterns that are figures.
PATTERNS = {
    **{f"read-4k-{depth}": f"rw=randread bs=4k iodepth={depth}" for depth in (1, 4, 16, 64, 256)},
    "read-16k-1": "rw=randread bs=16k iodepth=1",
    "read-64k-1": "rw=randread bs=64k iodepth=1",
    "read-64k-32": "rw=randread bs=64k iodepth=32",
    "stream-read-1": "rw=read bs=128k iodepth=1",
    "stream-read-32": "rw=read bs=128k iodepth=32",
    "write-4k-1": "rw=randwrite bs=4k iodepth=1",
    "write-4k-32": "rw=randwrite bs=4k iodepth=32",
    "mix-4k-32": "rw=randrw rwmixread=70 bs=4k iodepth=32",
}


def drawn(rng: random.Random, is_served: bool) -> dict[str, str]:
    """The changes of `ssd-tlc` that make a twin."""
    qlc = rng.random() < 0.3
    planes, channels, ways = rng.choice([2, 4]), rng.choice([2, 4, 8]), rng.choice([1, 2, 4])

    def between(low: float, high: float) -> float:
        return math.exp(rng.uniform(math.log(low), math.log(high)))

    # A program is one of all planes: the array takes 60 to 900 MB/s, of which random writes leave a part.
    pages = 4 if qlc else 3
    program_us = between(4000, 12000) if qlc else between(900, 5000)
    part = "qlc-2022" if qlc else "tlc-2022"
    return {
        "media.tlc.part": part,
        "media.tlc.planes": str(planes),
        "media.tlc.blocks": str(round(between(200, 500))),
        "media.tlc.read": f"{between(40, 110):.1f} us",
        "media.tlc.plane_reads": rng.choice(["multi", "independent"]),
        "media.tlc.program": f"{program_us:.0f} us",
        "media.tlc.erase": f"{between(4, 10):.2f} ms",
        "media.tlc.transfer": f"{between(400, 1200):.0f} MB/s",
        "array.channels": str(channels),
        "array.ways": str(ways),
        "ftl.spare": f"{between(9, 30):.1f} %",
        "ftl.overhead": f"{between(2, 12):.1f} us",
        "ftl.buffer.size": f"{max(8, 2 * channels * ways * planes * pages * 16 // 1024)} MiB",
        "ftl.clean.kind": rng.choice(["greedy", "greedy", "windowed-greedy", "cost-benefit", "fifo"]),
        "media.dram.hold": "1 s",
        "path.rate": "3.5 GB/s",
        "path.command": f"{between(15, 30) / (1 if is_served else 10):.2f} us",
    }


class Twin:
    """A served design, its probe and its fit, in a folder of its own."""

    def __init__(self, nvlab: str, folder: Path, changes: dict[str, str], slow: int, simulated: bool) -> None:
        self.nvlab, self.folder, self.slow, self.simulated = nvlab, folder, slow, simulated
        folder.mkdir(parents=True, exist_ok=True)
        self.design = "ssd-tlc," + ",".join(f"{key}={value}" for key, value in changes.items())
        self.uri = f"nbd+unix:///?socket={folder}/socket"

    def call(self, *args: str) -> str:
        done = subprocess.run([self.nvlab, *args], cwd=self.folder, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 1):
            sys.exit(f"nvlab {' '.join(args)}: {done.stderr}")
        return done.stdout

    def values(self, design: str) -> dict[str, str]:
        shown = json.loads(self.call("design", "show", design, "--json"))
        return {key: one["value"].strip('"[]') for key, one in shown["values"].items()}

    @contextmanager
    def served(self):
        args = [self.nvlab, "serve", self.design, "--nbd", f"{self.folder}/socket", "--time", self.time()]
        args += ["--precondition", "steady"]
        log = self.folder / "serve.log"
        with log.open("w") as said, subprocess.Popen(args, stdout=said, stderr=said) as server:
            try:
                while "\nnbd " not in "\n" + log.read_text():
                    if server.poll() is not None:
                        sys.exit(f"the twin is not served: {log.read_text()}")
                    time.sleep(0.1)
                yield
            finally:
                server.terminate()

    def at_speed(self, job: dict) -> None:
        """What a job would have measured of a twin that is not slowed down."""
        for kind in ("read", "write"):
            side = job[kind]
            for rate in ("iops", "bw_bytes"):
                side[rate] *= self.slow
            for latency in ("lat_ns", "clat_ns"):
                if "mean" in side.get(latency, {}):
                    side[latency]["mean"] /= self.slow
                percentiles = side.get(latency, {}).get("percentile", {})
                percentiles.update({name: value / self.slow for name, value in percentiles.items()})

    def probe(self) -> None:
        args = ["--file", "twin.probe.json", "--each", EACH, "--write", "2GB", "--state", "steady", "--lose", self.uri]
        self.call("probe", self.uri, *args, "--no-progress")

    def time(self) -> str:
        return "real" if self.slow == 1 else f"x{self.slow}"

    def sizes(self, design: str) -> tuple[int, int]:
        """Bytes for the host, and of all flash."""
        ran = self.call("run", design, "-w", "uniform", "--precondition", "fresh", "--until", "1 io", "--json", "--no-progress")
        shown = json.loads(ran)["design"]
        return shown["capacity_bytes"], shown["raw_bytes"]

    def measured(self) -> dict[str, dict]:
        """What the probe and fio say of it; from an earlier run if they have been asked."""
        file = self.folder / "measured.json"
        if self.simulated and not file.exists():
            runs = [{"fio version": "fio-3.36", "jobs": [self.ran(self.design, name, PATTERNS)]} for name in PATTERNS]
            probe = {"schema": "nvlab.probe/1", "target": self.uri, "state": "steady", "runs": runs}
            (self.folder / "twin.probe.json").write_text(json.dumps(probe))
            file.write_text(json.dumps({name: self.ran(self.design, name, JOBS) for name in JOBS}))
        if not file.exists():
            with self.served():
                self.probe()
                measured = {name: self.fio(name) for name in JOBS}
            probe = self.folder / "twin.probe.json"
            report = json.loads(probe.read_text())
            for run in report["runs"]:
                self.at_speed(run["jobs"][0])
            probe.write_text(json.dumps(report))
            for job in measured.values():
                self.at_speed(job)
            file.write_text(json.dumps(measured))
        return json.loads(file.read_text())

    def ran(self, design: str, name: str, jobs: dict[str, str]) -> dict:
        """What fio would report of a job on a design: as nvlab simulates it."""
        args = ["-w", str(self.job(name, jobs)), "--precondition", "steady", "--json", "--no-progress", "--out", "runs"]
        if self.simulated:
            args += ["--until", "100k io"]
        result = json.loads(self.call("run", design, *args))
        options = dict(option.split("=") for option in jobs[name].split(" "))
        report = {"jobname": name, "groupid": 0, "error": 0, "job options": {"ioengine": "io_uring", **options}}
        for kind in ("read", "write"):
            side, latency = result[kind], result[kind]["latency"]
            report[kind] = {"iops": side["per_s"], "bw_bytes": side["bytes_per_s"], "io_bytes": side["bytes"]}
            report[kind] |= {"total_ios": side["count"], "lat_ns": {"mean": latency["mean_ns"]}}
            report[kind]["clat_ns"] = {"percentile": {"99.000000": latency["p99_ns"]}}
        return report

    def job(self, name: str, jobs: dict[str, str]) -> Path:
        options = [f"ioengine=nbd\nuri={self.uri}\nnorandommap=1\nsize=100%\ntime_based=1\nruntime={JOB_S}\nzero_buffers=1"]
        file = self.folder / f"{name}.fio"
        file.write_text("\n".join([f"[{name}]", *options, *jobs[name].split(" "), ""]))
        return file

    def fio(self, name: str) -> dict:
        args = ["fio", "--output-format=json", str(self.job(name, JOBS))]
        text = subprocess.run(args, capture_output=True, text=True, check=True, cwd=self.folder).stdout
        return json.loads(text[text.index("{") :])["jobs"][0]

    def fit(self, capacity_bytes: int, cells: str) -> dict:
        facts = {
            "name": "twin",
            "capacity": f"{capacity_bytes} B",
            "interface": "PCIe 3.0 x4",
            "class": "data-centre",
            "cells": cells,
        }
        lines = ["schema = 1", "[drive]", *(f'{key} = "{value}"' for key, value in facts.items())]
        # What a user knows of the client and can measure on any server: the socket, its wake-ups, fio.
        is_fast = self.simulated or self.slow > 1
        command = (1.2, 3.2) if is_fast else (12, 32)
        host = (3, 6) if self.simulated else (max(4, 20 / self.slow), max(12, 80 / self.slow))
        lines += ["[known]", f'host = "{host[0]} us .. {host[1]} us"', f'command = "{command[0]} us .. {command[1]} us"', ""]
        (self.folder / "drive.toml").write_text("\n".join(lines))
        self.call("fit", "drive.toml", "twin.probe.json", "-o", "fitted.toml", "--no-progress")
        return json.loads(self.call("fit", "drive.toml", "twin.probe.json", "--json", "--no-progress"))


def base(text: str) -> float:
    """A value with its unit, in base units."""
    units = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1, "%": 0.01, "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
    units |= {"MB/s": 1e6, "GB/s": 1e9, "kB/s": 1e3, "B/s": 1}
    number, _, unit = text.partition(" ")
    return float(number) * units.get(unit, 1)


def numbers(twin: Twin, design: str, medium: str) -> dict[str, float]:
    """The numbers of a design that decide what a host sees."""
    values, (capacity, raw) = twin.values(design), twin.sizes(design)
    of = lambda key: base(values[key])  # noqa: E731
    flash = f"media.{medium}"
    dies = of("array.channels") * of("array.ways")
    programmed = dies * of(f"{flash}.planes") * of(f"{flash}.one_shot") * base(values[f"{flash}.page"])
    return {
        "read": of(f"{flash}.read"),
        "program": of(f"{flash}.program"),
        "dies": dies,
        "programs, B/s": programmed / of(f"{flash}.program"),
        "transfer": of(f"{flash}.transfer"),
        "flash over capacity": raw / capacity,
    }


#: The names of those numbers in the answer of a fit, for their intervals.
NAMES = {"read": "read", "program": "program", "transfer": "transfer"}


def off(found: float, true: float) -> str:
    return f"{found / true - 1:+7.1%}{'' if abs(found / true - 1) <= NEAR else ' !'}"


def compare_numbers(twin: Twin, answer: dict) -> list[bool]:
    true, found = numbers(twin, twin.design, "tlc"), numbers(twin, "fitted.toml", "flash")
    intervals = {one["key"].rsplit(".", 1)[-1]: one for one in answer["numbers"]}
    verdicts = []
    for name, value in true.items():
        known = intervals.get(NAMES.get(name, ""))
        inside = "" if known is None else ("inside" if known["interval"][0] <= value <= known["interval"][1] else "OUTSIDE")
        print(f"    {name:14} drawn {value:12.5g}  fitted {found[name]:12.5g}  {off(found[name], value):11} {inside}")
        verdicts.append(abs(found[name] / value - 1) <= NEAR)
    return verdicts


def compare_jobs(twin: Twin, measured: dict[str, dict]) -> list[bool]:
    verdicts = []
    for name, job in measured.items():
        predicted_job = twin.ran("fitted.toml", name, JOBS)
        for kind in ("read", "write"):
            if not job[kind]["total_ios"]:
                continue
            predicted_side = predicted_job[kind]
            rows = [
                ("io/s", job[kind]["iops"], predicted_side["iops"], NEAR),
                ("mean us", job[kind]["lat_ns"]["mean"] / 1e3, predicted_side["lat_ns"]["mean"] / 1e3, NEAR),
                ("p99 us", job[kind]["clat_ns"]["percentile"]["99.000000"] / 1e3, predicted_side["clat_ns"]["percentile"]["99.000000"] / 1e3, NEAR_P99),
            ]
            for what, real, predicted, bound in rows:
                difference = predicted / real - 1
                verdicts.append(abs(difference) <= bound)
                mark = "" if verdicts[-1] else " !"
                print(f"    {name:14} {kind:5} {what:8} measured {real:11.1f}  predicted {predicted:11.1f}  {difference:+7.1%}{mark}")
    return verdicts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("nvlab", type=Path, help="the program")
    parser.add_argument("--count", type=int, default=12, help="twins")
    parser.add_argument("--seed", type=int, default=1, help="of the first")
    parser.add_argument("--slow", type=int, default=1, help="how much slower they are served than they are")
    parser.add_argument("--simulated", action="store_true", help="the twins are simulated, not served")
    parser.add_argument("--folder", type=Path, default=Path("runs/twins"), help="where measurements are kept")
    args = parser.parse_args()
    nvlab, folder = str(args.nvlab.resolve()), args.folder.resolve()
    all_numbers, all_jobs = [], []
    for number in range(args.seed, args.seed + args.count):
        changes = drawn(random.Random(f"twin {number}"), args.slow == 1 and not args.simulated)
        way = "simulated" if args.simulated else f"x{args.slow}"
        twin = Twin(nvlab, folder / f"{number}-{way}", changes, args.slow, args.simulated)
        began = time.monotonic()
        measured = twin.measured()
        probed = time.monotonic()
        answer = twin.fit(twin.sizes(twin.design)[0], "QLC" if "qlc" in changes["media.tlc.part"] else "TLC")
        print(f"twin {number}: {', '.join(f'{key}={value}' for key, value in changes.items())}")
        print(f"    probe and jobs {probed - began:.0f} s, fit {time.monotonic() - probed:.0f} s")
        all_numbers += compare_numbers(twin, answer)
        all_jobs += compare_jobs(twin, measured)
        sys.stdout.flush()
    share = lambda verdicts: f"{sum(verdicts)} of {len(verdicts)}"  # noqa: E731
    print(f"{args.count} twins: numbers within 15 %: {share(all_numbers)}; predictions within 15 % (p99 25 %): {share(all_jobs)}")


if __name__ == "__main__":
    main()
