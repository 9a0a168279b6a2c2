"""Traces."""

from __future__ import annotations

import json
from pathlib import Path

import nvlab as nv
import pytest

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "traces/pgbench-ext4.blkparse.zst"


def test_a_trace_is_read_and_replayed() -> None:
    trace = nv.trace(RECORDED, compact=True, align="4KiB", qd=32)
    info = trace.info()
    assert info.requests == len(trace) > 10_000
    assert info.requests == info.reads + info.writes + info.trims + info.flushes
    printed = json.loads(nv.cli(["trace", "info", str(RECORDED), "--json"]).stdout)
    assert {**info.to_dict(), "origin": info.origin} == {k: v for k, v in printed.items() if k != "schema"}
    head = trace.head(5)
    assert len(head) == 5 and head.columns[:4] == ["time_ps", "op", "offset_bytes", "length_bytes"]
    batches = list(trace.batches(10_000))
    assert sum(map(len, batches)) == len(trace) and len(batches[0]) == 10_000
    assert list(batches[0].head(5)) == list(head)
    result = nv.run("bench-4g", trace, until="5000 io", precondition="fresh")
    assert result.workload == f"{RECORDED} compact align=4KiB qd=32"
    with pytest.raises(AttributeError, match="no figure `colour`"):
        info.colour


def test_traces_are_made_converted_and_split(folder: Path) -> None:
    made = nv.make_trace("zipf rate=1k/s", folder / "a.nvt", capacity="1 GiB", requests=1000)
    assert made["requests"] == 1000
    trace = nv.trace(folder / "a.nvt")
    assert trace.convert(folder / "a.parquet")["requests"] == 1000
    assert nv.trace(folder / "a.parquet").head(1000).arrow() == trace.head(1000).arrow()
    trace.split(folder / "volumes")
    assert len(list((folder / "volumes").iterdir())) == 1
    with pytest.raises(nv.CommandError, match="exists") as caught:
        trace.convert(folder / "a.parquet")
    assert caught.value.status == 2


def test_a_wrong_trace_says_where(folder: Path) -> None:
    file = folder / "wrong.csv"
    file.write_text("128166372003061629,usr,0,Read,7014609920,24576,41286\n128166372003061630,usr,0,Reed,0,512,1\n")
    with pytest.raises(nv.TraceError) as caught:
        nv.trace(file, format="msr").info()
    assert (caught.value.path, caught.value.line) == (str(file), 2)
    with pytest.raises(FileNotFoundError):
        nv.trace(folder / "none.nvt").info()
