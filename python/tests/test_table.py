"""Tables, by the Arrow C stream interface."""

from __future__ import annotations

import pickle
from pathlib import Path

import nvlab as nv
import pytest


def test_libraries_read_the_same(result: nv.Result) -> None:
    series = result.series
    arrow = series.arrow()
    assert arrow.num_rows == len(series) > 100 and arrow.column_names == series.columns
    assert arrow.schema.metadata[b"nvlab.key"].decode() == result.key
    polars = series.polars()
    assert polars["requests"].sum() == result.to_dict()["requests_served"]
    assert arrow.column("write_p99_ns").to_pylist() == polars["write_p99_ns"].to_list() == series["write_p99_ns"]
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    assert len(series.pandas()) == len(series) and isinstance(series.pandas(), pandas.DataFrame)
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
    with duckdb.connect() as connection:
        total = series.duckdb(connection).sum("requests").fetchall()[0][0]
        assert total == polars["requests"].sum()


def test_a_stream_is_taken_as_often_as_one_likes(result: nv.Result) -> None:
    import pyarrow

    histogram = result.latency_histogram
    for _ in range(3):
        histogram.__arrow_c_stream__()  # a capsule that nobody consumes is freed
    assert pyarrow.schema(histogram).names == ["op", "upper_ns", "count"] == histogram.columns
    reads = sum(row["count"] for row in histogram if row["op"] == "read")  # type: ignore[misc]
    assert reads == result.to_dict()["read"]["count"]


def test_copies_are_equal(result: nv.Result, folder: Path) -> None:
    import pyarrow.parquet

    table = result.series
    copy = pickle.loads(pickle.dumps(table))
    assert copy.arrow() == table.arrow()
    saved = table.save(folder / "series.parquet")
    assert pyarrow.parquet.read_table(saved).to_pydict() == table.arrow().to_pydict()
    # Byte for byte what a kept run has.
    assert saved.read_bytes() == (result.save(folder) / "series.parquet").read_bytes()
    assert list(table.head(2)) == list(table)[:2] and len(table.head(10**6)) == len(table)


def test_tables_of_columns() -> None:
    table = nv.Table.of_columns({"a": [1, None], "b": ["x", None], "c": [1.5, 2], "d": [True, False]})
    assert list(table) == [{"a": 1, "b": "x", "c": 1.5, "d": True}, {"a": None, "b": None, "c": 2.0, "d": False}]
    assert str(table).splitlines()[0].split() == ["a", "b", "c", "d"]
    with pytest.raises(KeyError):
        table["e"]
    assert "&lt;" in nv.Table.of_columns({"a": ["<script>"]})._repr_html_()


def test_rows_and_slices() -> None:
    table = nv.Table.of_columns({"n": list(range(5)), "b": list("vwxyz")})
    assert table[0] == {"n": 0, "b": "v"} and table[-1] == {"n": 4, "b": "z"}
    assert isinstance(table[:3], nv.Table) and table[:3]["n"] == [0, 1, 2] and table[3:]["b"] == ["y", "z"]
    assert table[::2]["n"] == [0, 2, 4] and table[::-1]["n"] == [4, 3, 2, 1, 0] and len(table[7:]) == 0
    assert [row["n"] for row in table] == table["n"] and list(reversed(table[1:3]["b"])) == ["x", "w"]
    assert list(table)[1:3] == list(table[1:3])
    for missing in (5, -6):
        with pytest.raises(IndexError, match="of a table of 5 rows"):
            table[missing]
