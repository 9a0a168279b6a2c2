"""Traces."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

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


def requests() -> dict[str, list[Any]]:
    """A table with the columns of a trace."""
    count = 1000
    return {
        "time_us": [100 * at for at in range(count)],
        "op": ["read" if at % 4 == 0 else "write" for at in range(count)],
        "offset_sectors": [8 * (at * 7919 % 100_000) for at in range(count)],
        "length_bytes": [4096] * count,
        "volume": ["ab"[at % 2] for at in range(count)],
        "remark": [None] * count,
    }


def test_data_frames_are_traces() -> None:
    import polars
    import pyarrow

    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frames: list[Any] = [nv.Table.of_columns(requests()), polars.DataFrame(requests()), pyarrow.table(requests())]
    frames += [pandas.DataFrame(requests()), pandas.DataFrame(requests()).astype({"op": "category"})]
    frames += [polars.DataFrame(requests()).with_columns(polars.col("time_us").cast(polars.Datetime("us")).alias("time")).drop("time_us")]
    traces = [nv.trace(frame) for frame in frames]
    assert len({trace.text for trace in traces}) == 1, "the same requests have the same name"
    info = traces[0].info()
    assert (info.requests, info.reads, info.duration_s, traces[0].volumes) == (1000, 250, 0.0999, ["a", "b"])
    assert len(nv.trace(frames[1], volumes=["a"])) == 500
    results = [nv.run("bench-4g", work, precondition="fresh") for work in (traces[0], frames[1], traces[0].workload)]
    assert results[0].metrics["write.count"] == 750 and results[0] == results[1] == results[2]
    assert nv.workload(frames[2], qd=8).text == f"{traces[0].text} qd=8"
    sweep = nv.sweep("bench-4g", {"ftl.spare": ["10 %", "20 %"]}, frames[1], precondition="fresh")
    assert sweep["read.count"] == [250.0, 250.0]


def test_a_frame_goes_to_another_process(folder: Path) -> None:
    trace = nv.trace(nv.Table.of_columns(requests()), qd=4)
    assert trace.convert(folder / "t.parquet")["requests"] == 1000
    assert len(nv.trace(folder / "t.parquet")) == 1000
    assert len(list(trace.split(folder / "split").iterdir())) == 2
    (folder / "kept").write_bytes(pickle.dumps((trace, trace.workload)))
    script = (
        "import pickle, sys; t, w = pickle.loads(open(sys.argv[1], 'rb').read()); "
        "print(len(t), t.text == w.text, t.text)"
    )
    said = subprocess.run([sys.executable, "-c", script, folder / "kept"], text=True, capture_output=True, check=True)
    assert said.stdout.split(" ", 2) == ["1000", "True", f"{trace.text}\n"]
    with pytest.raises(nv.WorkloadError, match="this process has no such table"):
        nv.run("bench-4g", "table:0123456789abcdef")


def test_a_frame_that_is_no_trace_says_why() -> None:
    table = requests()
    with pytest.raises(nv.TraceError, match="no column for the offset; its columns are time_us, op, length_bytes.*needed"):
        nv.trace(nv.Table.of_columns({key: table[key] for key in ("time_us", "op", "length_bytes")}))
    with pytest.raises(nv.TraceError, match="row 1: length_bytes 'texts' is wrong: a numeric column"):
        nv.trace(nv.Table.of_columns({**table, "length_bytes": ["4k"] * 1000}))
    with pytest.raises(nv.TraceError, match="row 3: op 'seek' is wrong: read, write, trim or flush") as caught:
        nv.trace(nv.Table.of_columns({**table, "op": ["read", "read", "seek", *["write"] * 997]}))
    assert caught.value.line == 3
    with pytest.raises(nv.TraceError, match="row 2: offset_sectors 'null'"):
        nv.trace(nv.Table.of_columns({**table, "offset_sectors": [0, None, *[0] * 998]}))
    with pytest.raises(nv.InputError, match="a data frame has none"):
        nv.trace(nv.Table.of_columns(table), format="msr")


def test_a_text_table_by_its_columns(tmp_path: Path) -> None:
    file = tmp_path / "my.csv"
    file.write_text("when;rw;where;many\n1;0;8;8\n2;1;0;16\n")
    trace = nv.trace(
        file, columns="time_ms,op,offset_sectors,length_sectors", read="0", write="1", header=True, qd=2
    )
    assert trace.info().read_bytes == 4096 and trace.head()["op"] == ["read", "write"]
    assert "columns=time_ms,op,offset_sectors,length_sectors (as given)" in trace.about
    assert trace.text.endswith(" qd=2") and "header=yes" in trace.text
    with pytest.raises(nv.TraceError, match="my.csv:2: column 2 .op. '0' is wrong"):
        nv.trace(file, columns="time_ms,op,offset_sectors,length_sectors").info()
