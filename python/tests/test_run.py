"""Runs: results, what is kept, threads, interruption."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import nvlab as nv
import pytest
from conftest import QUICK

#: Takes minutes: what is interrupted.
LONG = {"until": "100 x capacity", "precondition": "fresh", "cache": False}


def test_a_result_has_what_the_command_prints(result: nv.Result, folder: Path) -> None:
    printed = nv.cli(
        ["run", "bench-4g", "-w", "zipf read=50% bs=4KiB qd=8", "--until", "2 x capacity", "--precondition", "full"]
        + ["--json", "--out", str(folder)]
    )
    document = json.loads(printed.stdout)
    assert result.to_dict() == document
    assert result.write_amplification == document["write_amplification"]["total"] >= 1
    assert result.latency("read")._asdict() == document["read"]["latency"]
    assert result.lifetime_years == document["lifetime"]["years"]
    assert result.price == document["price"]["total_usd"]
    assert result.metrics["p99.9.write"] == document["write"]["latency"]["p99_9_ns"]
    assert result.iops == pytest.approx(document["read"]["per_s"] + document["write"]["per_s"])
    assert set(result.metrics) <= set(nv.metrics())
    with pytest.raises(KeyError):
        result.latency("trim")
    with pytest.raises(nv.InputError, match="did you mean `write.p95`"):
        result.metrics["write.p98"]
    assert "bench-4g" in result._repr_html_() and "write amplification" in result._repr_html_()
    # What the command has kept is the same result, and is not run again.
    kept = nv.run(
        "bench-4g", "zipf read=50% bs=4KiB qd=8", until="2 x capacity", precondition="full", out=folder
    )
    assert kept.reused and kept == result and kept.folder is not None
    assert nv.load(kept.folder) == result


def test_a_result_is_kept_and_pickled(result: nv.Result, folder: Path) -> None:
    saved = result.save(folder)
    assert {path.name for path in saved.iterdir()} >= {"result.json", "series.parquet", "hist.parquet"}
    assert nv.load(saved) == result == nv.load(saved / "result.json")
    copy = pickle.loads(pickle.dumps(result))
    assert copy == result and copy.wall_s == result.wall_s
    page = result.report(folder / "page.html").read_text()
    assert page.startswith("<!doctype html>") or page.startswith("<!DOCTYPE html>")
    with pytest.raises(AttributeError):
        result.write_amplification = 1.0  # type: ignore[misc]


def test_the_seed_alone_decides() -> None:
    runs = [nv.run("bench-4g", "zipf qd=8", seed=seed, **QUICK) for seed in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]


def test_workloads_as_texts_and_options(folder: Path) -> None:
    text = nv.run("bench-4g", "zipf read=70% bs=8KiB qd=4", **QUICK)
    assert nv.run("bench-4g", nv.workload("zipf", read="70 %", bs="8 KiB", qd=4), **QUICK).key == text.key
    both = nv.workload("zipf", qd=4) + "uniform read=100%"
    assert len(nv.run("bench-4g", both, **QUICK).to_dict()["tenants"]) == 2


def test_errors_have_their_kinds() -> None:
    with pytest.raises(nv.WorkloadError, match="zipff"):
        nv.run("bench-4g", "zipff")
    with pytest.raises(nv.InputError, match="is not a limit"):
        nv.run("bench-4g", "zipf", until="soon")
    with pytest.raises(nv.InputError):
        nv.run("bench-4g", "zipf", precondition="frseh")
    with pytest.raises(nv.Error):
        nv.run("bench-4g", "tpca rate=10k/s", until="1 s")
    with pytest.raises(TypeError, match="no option"):
        nv.run("bench-4g", "zipf", colour="blue", **QUICK)


def test_a_note_is_a_warning() -> None:
    with pytest.warns(nv.NvlabWarning, match="reads of unwritten addresses return zeros"):
        nv.run("bench-4g", "uniform rw=randread", until="1000 io", precondition="full,fill=10%")


def test_comparisons() -> None:
    found = nv.compare(["bench-4g", "bench-4g,ftl.clean.kind=fifo"], "zipf qd=8", repeat=2, **QUICK)
    assert [result.seed for result in found] == [1, 2, 1, 2]
    assert found["bench-4g ftl.clean.kind=fifo"].seed == 1 and found[0].design == "bench-4g"
    assert "waf" in found.text(format="csv") and "bench-4g" in str(found)
    table = found.table
    assert table["design"][0] == "bench-4g" and table["waf"][0] == found[0].write_amplification
    assert "<table>" in found._repr_html_() and not found.left_out


def test_a_design_that_cannot_is_left_out() -> None:
    found = nv.compare(["bench-4g", "rvm-disk"], "zipf qd=8", **QUICK)
    assert [result.design for result in found] == ["bench-4g"] and set(found.left_out) == {"rvm-disk"}
    with pytest.raises(nv.Error):
        nv.compare(["rvm-disk"], "zipf qd=8", **QUICK)


def test_other_threads_go_on() -> None:
    ticks: list[float] = []
    end = threading.Event()

    def tick() -> None:
        while not end.wait(0.01):
            ticks.append(time.monotonic())

    thread = threading.Thread(target=tick)
    thread.start()
    began = time.monotonic()
    nv.run("bench-4g", "uniform qd=8", until="20 x capacity", precondition="fresh", cache=False)
    elapsed = time.monotonic() - began
    end.set()
    thread.join()
    during = [at for at in ticks if began <= at <= began + elapsed]
    gaps = [later - earlier for earlier, later in zip(during, during[1:])]
    assert elapsed > 0.3, "too short to say anything"
    # Ticks of 10 ms: a simulation that held the interpreter would leave a gap as long as itself.
    assert max(gaps) < elapsed / 2 and len(during) > elapsed * 20


def test_progress_is_reported() -> None:
    seen: list[tuple[int, int, list[tuple[str, str, float]]]] = []
    nv.run(
        "bench-4g", "uniform qd=8", until="4 x capacity", precondition="fresh", cache=False,
        progress=lambda *what: seen.append(what),
    )
    shares = [running[0][2] for _, _, running in seen if running]
    assert seen[-1][1] == 1 and shares == sorted(shares) and shares[-1] > 0.3


def test_an_exception_of_the_observer_ends_the_run() -> None:
    class Enough(Exception):
        pass

    def stop(*_: object) -> None:
        raise Enough

    began = time.monotonic()
    with pytest.raises(Enough):
        nv.run("bench-4g", "uniform qd=8", progress=stop, **LONG)
    assert time.monotonic() - began < 10


INTERRUPTED = """
import os, time, nvlab as nv
print("began", flush=True)
try:
    nv.run({design!r}, {workload!r}, until="100 x capacity", precondition={state!r}, cache=False)
except KeyboardInterrupt:
    print(time.time(), flush=True)
os._exit(0)
"""


def _interrupted_s(code: str, after_s: float) -> float:
    """Seconds from a Ctrl-C to the exception."""
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None and child.stdout.readline() == "began\n"
    time.sleep(after_s)
    sent = time.time()
    os.kill(child.pid, signal.SIGINT)
    caught = float(child.stdout.readline())
    child.stdout.close()
    assert child.wait(timeout=10) == 0
    return caught - sent


@pytest.mark.parametrize("after_s", [0.3, 1.0])
@pytest.mark.parametrize(
    ("design", "workload", "state"),
    [
        ("bench-4g", "uniform qd=8", "fresh"),
        ("ssd-tlc", "uniform qd=8", "steady"),
        ("envy", "tpca rate=10k/s", "steady"),
        # For 12 s, it is being made: nothing looks at a flag.
        ("qlc-61tb", "zipf qd=32", "steady"),
    ],
)
def test_ctrl_c_ends_a_run(design: str, workload: str, state: str, after_s: float) -> None:
    code = INTERRUPTED.format(design=design, workload=workload, state=state)
    # Again if it takes longer, so that other work on the machine does not count.
    seconds = []
    while len(seconds) < 3 and not (seconds and seconds[-1] < 0.2):
        seconds.append(_interrupted_s(code, after_s))
    print(f"{design} after {after_s} s: {seconds}")
    assert min(seconds) < 0.2


def test_a_lifetime_without_cleaning_says_so(result: nv.Result, tmp_path: Path) -> None:
    assert not any("cost of cleaning" in note for note in result.notes)
    short = nv.run("bench-4g", "zipf qd=8", **QUICK)
    note = short.notes[0]
    assert note.startswith("the lifetime does not include the cost of cleaning (") and note[:40] in str(short)
    assert short.to_dict()["notes"] == short.notes
    assert note in short.metrics.shown("lifetime") and short.to_dict()["lifetime"]["caveat"] == note
    assert json.loads(result.timeline(tmp_path / "run.json").read_text())["traceEvents"]
