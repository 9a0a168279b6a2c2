"""Sweeps on a cluster of Dask.distributed, on this machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nvlab as nv
import pytest
from conftest import DRIVE, QUICK
from nvlab import _dask

distributed = pytest.importorskip("distributed", reason="Dask is not installed")

AXES = {"ftl.clean.kind": ["greedy", "fifo"], "ftl.spare": ["10 %", "15 %", "20 %", "25 %", "30 %"]}
WORKLOAD = "zipf read=30% qd=8"

# Threads and sockets of Dask outlive what made them for a moment, and say so when they are collected.
pytestmark = pytest.mark.filterwarnings("ignore")


class Cluster:
    """A scheduler and workers of one thread each, in processes that can be killed."""

    def __init__(self, folder: Path, workers: int) -> None:
        self._folder = folder
        file = folder / "scheduler.json"
        self.scheduler = self._start("scheduler", "--port", "0", "--no-dashboard", "--scheduler-file", str(file))
        self.workers = [self.worker() for _ in range(workers)]
        deadline = time.monotonic() + 60
        while not file.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        with distributed.Client(scheduler_file=str(file)) as client:
            client.wait_for_workers(workers, timeout=60)
            self.address = client.scheduler.address

    def worker(self) -> subprocess.Popen[bytes]:
        file = str(self._folder / "scheduler.json")
        return self._start(
            "worker", "--scheduler-file", file, "--nthreads", "1", "--no-nanny", "--no-dashboard",
            "--host", "127.0.0.1", "--local-directory", str(self._folder),
        )

    def _start(self, what: str, *arguments: str) -> subprocess.Popen[bytes]:
        log = (self._folder / f"{what}.log").open("ab")
        host = ("--host", "127.0.0.1") if what == "scheduler" else ()
        command = [sys.executable, "-m", "distributed.cli.dask_" + what, *arguments, *host]
        return subprocess.Popen(command, stdout=log, stderr=log)

    def close(self) -> None:
        for process in [*self.workers, self.scheduler]:
            process.kill()
            process.wait()


@pytest.fixture
def cluster(folder: Path) -> Iterator[Cluster]:
    """Two workers."""
    cluster = Cluster(folder, 2)
    yield cluster
    cluster.close()


def rows(table: nv.SweepTable, folder: Path) -> bytes:
    """The table as a file."""
    path = folder / "table.parquet"
    table.save(path)
    return path.read_bytes()


def test_the_table_is_the_same_wherever_points_run(cluster: Cluster, folder: Path) -> None:
    here = nv.sweep("bench-4g", AXES, WORKLOAD, **QUICK)
    there = nv.sweep("bench-4g", AXES, WORKLOAD, on=f"dask:{cluster.address}", **QUICK)
    assert rows(here, folder) == rows(there, folder) and len(there) == 10
    with distributed.Client(cluster.address) as client:
        changed = nv.design("bench-4g").set("ftl.spare", "12 %")
        axes = {"ftl.clean.kind": ["greedy", "gredy"]}
        table = nv.sweep(changed, axes, WORKLOAD, on=client, out=folder / "out", **QUICK)
        assert client.status == "running", "it stays open"
    assert table.failed == 1 and "gredy" in str(table["error"][1])
    assert rows(table, folder) == rows(nv.sweep(changed, axes, WORKLOAD, **QUICK), folder)
    [kept] = (folder / "out").glob("*/result.json")
    assert nv.load(kept.parent).metrics["waf"] == table["waf"][0]


def test_data_frames_are_shipped(cluster: Cluster, folder: Path) -> None:
    import polars

    times = [0.001 * at for at in range(2000)]
    frame = polars.DataFrame({"time_s": times, "op": ["write"] * 2000, "offset_bytes": range(0, 4096 * 2000, 4096)})
    frame = frame.with_columns(length_bytes=4096)
    there = nv.sweep("bench-4g", AXES, frame, on=f"dask:{cluster.address}", precondition="fresh")
    assert there.failed == 0 and set(there["write.count"]) == {2000.0}
    assert rows(there, folder) == rows(nv.sweep("bench-4g", AXES, nv.trace(frame), precondition="fresh"), folder)


def test_nothing_is_lost_with_a_worker(cluster: Cluster, folder: Path) -> None:
    done: list[int] = []

    def report(count: int, *_: object) -> None:
        done.append(count)
        if count == 3:
            os.kill(cluster.workers[0].pid, signal.SIGKILL)

    long = {**QUICK, "until": "2 x capacity"}
    table = nv.sweep(
        "bench-4g", AXES, WORKLOAD, on=f"dask:{cluster.address}", out=folder / "out", progress=report, **long
    )
    assert cluster.workers[0].wait() == -signal.SIGKILL
    assert table.failed == 0 and len(list((folder / "out").glob("*/result.json"))) == 10
    assert rows(table, folder) == rows(nv.sweep("bench-4g", AXES, WORKLOAD, **long), folder)


@pytest.mark.parametrize("victim", ["sweep", "scheduler"])
def test_a_sweep_that_was_killed_goes_on(victim: str, cluster: Cluster, folder: Path) -> None:
    out = folder / "out"
    script = (
        "import nvlab as nv\n"
        f"nv.sweep('bench-4g', {AXES!r}, {WORKLOAD!r}, on='dask:{cluster.address}', out={str(out)!r},\n"
        "         until='2 x capacity', precondition='fresh')\n"
    )
    process = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.PIPE)
    deadline = time.monotonic() + 120
    while len(list(out.glob("*/result.json"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(process.pid if victim == "sweep" else cluster.scheduler.pid, signal.SIGKILL)
    _, said = process.communicate(timeout=120)
    if victim == "scheduler":
        assert process.returncode == 1 and b"RunError" in said, said
        cluster.close()
        (folder / "again").mkdir()
        cluster = Cluster(folder / "again", 2)
    kept = {path: path.stat().st_mtime_ns for path in out.glob("*/result.json")}
    assert 2 <= len(kept) < 10
    try:
        table = nv.sweep(
            "bench-4g", AXES, WORKLOAD, on=f"dask:{cluster.address}", out=out, until="2 x capacity", precondition="fresh"
        )
    finally:
        cluster.close()
    assert len(table) == 10 and table.failed == 0
    assert {path: path.stat().st_mtime_ns for path in kept} == kept, "what was done is not done again"


def test_another_version_is_found_out(folder: Path) -> None:
    errand = {
        "point": 0, "title": "p", "key": "0" * 64, "design": ("bench-4g", None, []), "workload": WORKLOAD, "seed": 1,
        "until": "1000 io", "state": "fresh",
    }
    answer = _dask.work(errand, None, 0, {})
    assert isinstance(answer, tuple)
    with pytest.raises(nv.RunError, match="another version"):
        _dask._keep(errand, answer, folder)


def test_what_is_no_cluster() -> None:
    with pytest.raises(nv.InputError):
        nv.sweep("bench-4g", AXES, WORKLOAD, on="ray", **QUICK)
    with pytest.raises(nv.Unsupported, match="no scheduler"):
        nv.sweep("bench-4g", AXES, WORKLOAD, on="dask:tcp://127.0.0.1:1", **QUICK)


def test_the_command(cluster: Cluster, folder: Path) -> None:
    words = ["sweep", "bench-4g", "-w", WORKLOAD, "-p", "ftl.spare=10%,20%", "--until", "20000 io", "--precondition", "fresh"]
    nv.cli([*words, "--out", folder / "here"])
    nv.cli([*words, "--out", folder / "there", "--on", f"dask:{cluster.address}"])
    tables = [(folder / place / "sweep-bench-4g.parquet").read_bytes() for place in ("here", "there")]
    assert tables[0] == tables[1]
    with pytest.raises(nv.CommandError, match="no scheduler") as caught:
        nv.cli([*words, "--out", folder / "third", "--on", "dask:tcp://127.0.0.1:1"])
    assert caught.value.status == 4


def test_searches_have_the_same_answer_on_a_cluster(cluster: Cluster, folder: Path) -> None:
    space = {"ftl.clean.kind": ["greedy", "fifo"], "ftl.spare": ["10 %", "20 %", "30 %"]}
    choice: dict[str, Any] = {"runs": 5, "until": "0.5 x capacity", "precondition": "full", "cache": False, "progress": False}
    needs = ["waf <= 2.5"]
    here = nv.choose("bench-4g", space, WORKLOAD, "capacity", needs, **choice)
    there = nv.choose("bench-4g", space, WORKLOAD, "capacity", needs, on=f"dask:{cluster.address}", **choice)
    assert list(there.table) == list(here.table) and there.best[0].name == here.best[0].name
    file = folder / "d.toml"
    file.write_text(DRIVE, encoding="utf-8")
    fitted = [nv.fit(file, on=on, cache=False, progress=False) for on in ("local", f"dask:{cluster.address}")]
    assert list(fitted[0].figures) == list(fitted[1].figures)
    with pytest.raises(nv.InputError, match="not run again on a cluster"):
        nv.choose("bench-4g", space, WORKLOAD, "capacity", needs, on="dask", force=True, **choice)
