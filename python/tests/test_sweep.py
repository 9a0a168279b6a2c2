"""Sweeps, reproductions."""

from __future__ import annotations

import pickle
from pathlib import Path

import nvlab as nv
import pytest
from conftest import QUICK


def test_a_point_is_a_row(table: nv.SweepTable) -> None:
    assert len(table) == 6 and table.failed == 0
    assert table["ftl.clean.kind"] == ["greedy"] * 3 + ["fifo"] * 3
    assert table["ftl.spare"] == [0.1, 0.2, 0.3] * 2
    # More room to clean in, less to move.
    greedy = table.polars()["waf"].to_list()[:3]
    assert greedy == sorted(greedy, reverse=True)
    assert pickle.loads(pickle.dumps(table)).arrow() == table.arrow()
    assert str(table).splitlines()[0].split()[:4] == ["ftl.clean.kind", "ftl.spare", "iops", "write.mean"]
    assert str(table).splitlines()[1].split()[-1] in ("years", "days") and "<table>" in table._repr_html_()
    assert table["write.p99"] == table["write.p99_ns"]


def test_axes_of_designs_workloads_and_seeds() -> None:
    big = nv.design("bench-4g").set("ftl.spare", "28 %")
    table = nv.sweep(["bench-4g", big], {}, ["zipf qd=4", "uniform qd=4"], repeat=2, **QUICK)
    assert len(table) == 8
    assert table["design"] == ["bench-4g"] * 4 + ["bench-4g ftl.spare=28 %"] * 4
    assert table["workload"][:4] == ["zipf qd=4"] * 2 + ["uniform qd=4"] * 2
    assert table["seed"] == [1.0, 2.0] * 4
    # The design's own change counts at every point.
    assert len(set(table["capacity_bytes"][:4])) == len(set(table["capacity_bytes"][4:])) == 1
    assert table["capacity_bytes"][0] > table["capacity_bytes"][4]  # type: ignore[operator]


def test_keys_that_move_together() -> None:
    axes = {("ftl.spare", "ftl.clean.kind"): [("10 %", "greedy"), ("20 %", "fifo"), ("20 %", "greedy")]}
    table = nv.sweep("bench-4g", axes, "zipf qd=4", repeat=2, **QUICK)
    assert table["ftl.spare"] == [0.1, 0.1, 0.2, 0.2, 0.2, 0.2]
    assert table["ftl.clean.kind"] == ["greedy"] * 2 + ["fifo"] * 2 + ["greedy"] * 2
    assert table["seed"] == [1.0, 2.0] * 3
    for wrong, why in [
        ({("ftl.spare", "ftl.clean.kind"): [("10 %",)]}, "`10 %` has 1 values for 2 keys"),
        ({("ftl.spare", "ftl.clean.kind"): ["10 %"]}, "'10 %' is not a value of each of the 2 keys"),
        ({("ftl.spare", "workload"): [("10 %", "zipf")]}, "`workload` must be a separate axis"),
        ({("ftl.spare", "ftl.unit"): []}, "an axis needs keys and values"),
        ({"ftl.spare": ["10 %"], ("ftl.spare", "ftl.unit"): [("1 %", "4 KiB")]}, "varied by 2 axes"),
    ]:
        with pytest.raises(nv.InputError, match=why):
            nv.sweep("bench-4g", wrong, "zipf", **QUICK)


def test_a_point_that_cannot_is_a_row_with_its_error() -> None:
    table = nv.sweep("bench-4g", {"ftl.clean.kind": ["greedy", "gredy"]}, "zipf", **QUICK)
    assert table.failed == 1 and table["error"][0] is None and "gredy" in str(table["error"][1])
    with pytest.raises(nv.DesignError):
        nv.sweep("bench-4g", {"ftl.clean.kind": ["gredy"]}, "zipf", **QUICK)


def test_a_sweep_goes_on_where_it_was(folder: Path) -> None:
    axes = {"ftl.spare": ["10 %", "20 %", "30 %"]}
    calls: list[int] = []

    def stop(done: int, *_: object) -> None:
        calls.append(done)

    parts = [nv.sweep("bench-4g", axes, "zipf", shard=f"{n}/2", out=folder / f"{n}", **QUICK) for n in (1, 2)]
    assert [len(part) for part in parts] == [2, 1]
    runs = sum(1 for path in folder.glob("[12]/*/result.json"))
    assert runs == 3
    whole = nv.sweep(
        "bench-4g", axes, "zipf", include=[folder / "1", folder / "2"], out=folder / "all", progress=stop, **QUICK
    )
    assert not list((folder / "all").glob("*/result.json")), "nothing was left to run"
    assert whole.arrow() == nv.sweep("bench-4g", axes, "zipf", **QUICK).arrow()


def test_the_file_of_a_sweep(folder: Path) -> None:
    file = folder / "spare.toml"
    file.write_text(
        '[sweep]\ndesign = "bench-4g"\nworkload = "zipf qd=4"\nuntil = "20000 io"\nprecondition = "fresh"\n'
        '[[axis]]\nkey = "ftl.spare"\nrange = "10 % .. 20 % : 10 %"\n'
    )
    table = nv.sweep(file)
    assert table["ftl.spare"] == [0.1, 0.2]
    assert "<html" in table.report(folder / "sweep.html").read_text()
    file.write_text("[sweep]\ncolour = 1\n")
    with pytest.raises(nv.DesignError) as caught:
        nv.sweep(file)
    assert caught.value.path == str(file)


def test_fronts() -> None:
    table = nv.Table.of_columns(
        {"waf": [1.0, 2.0, 3.0, None], "iops": [10.0, 30.0, 20.0, 99.0]}
    )
    assert table.pareto("waf", "iops") == [0, 1]
    with pytest.raises(nv.InputError, match="neither less nor more"):
        nv.Table.of_columns({"seed": [1.0], "requests": [1.0]}).pareto("requests")


def test_claims_of_a_paper() -> None:
    found = nv.reproduce("003", only=["sector"])
    assert set(found.table["figure"]) == {"sector"}
    rows = {row["claim"]: row for row in found.table}
    whole = rows["a whole sector of 512 B"]
    assert whole["expected"] == 2560 and whole["unit"] == "us" and whole["verdict"] == "input"
    assert whole["low"] <= whole["measured"] <= whole["high"]  # type: ignore[operator]
    verdicts = [str(verdict) for verdict in found.table["verdict"]]
    assert found.holds == (not any(verdict.startswith(("differs", "missing")) for verdict in verdicts))
    assert f"{sum(verdict == 'pass' for verdict in verdicts)} pass" in found.summary
    with pytest.raises(nv.InputError, match="there is nothing to reproduce"):
        nv.reproduce("999")


def test_the_page_of_a_finished_sweep(folder: Path, table: nv.SweepTable) -> None:
    page = table.report(folder / "page.html").read_text()
    for words in ("Curves", "Pareto front", "<svg", "write p99", "WA"):
        assert words in page, words
    # The table is all it takes: saved, read, pickled, or made by the command line.
    table.save(folder / "sweep-mine.parquet")
    again = nv.load_sweep(folder)
    assert again.arrow() == table.arrow() and (again.about, again.failed, str(again)) == (table.about, 0, str(table))
    for one in (again, nv.load_sweep(folder / "sweep-mine.parquet"), pickle.loads(pickle.dumps(table))):
        assert one.report(folder / "again.html").read_text() == page
    nv.cli(["report", folder, "--html", folder / "command.html"])
    assert (folder / "command.html").read_text() == page
    other = table.report(folder / "other.html", metrics=["iops"], front=["capacity", "waf"]).read_text()
    assert "Pareto front: capacity, WA" in other and "write p99" not in other
    for wrong in ({"front": ["waf"]}, {"front": ["waf", "erases.none"]}, {"metrics": ["speed"]}):
        with pytest.raises(nv.InputError):
            table.report(folder / "wrong.html", **wrong)  # type: ignore[arg-type]
    table.polars().write_parquet(folder / "plain.parquet")
    with pytest.raises(nv.InputError, match="not the table of a sweep"):
        nv.load_sweep(folder / "plain.parquet")
    with pytest.raises(nv.InputError, match="no table of a sweep"):
        (folder / "empty").mkdir()
        nv.load_sweep(folder / "empty")


def test_lifetimes_without_cleaning_are_told() -> None:
    short = nv.sweep("bench-4g", {"ftl.spare": ["10 %", "20 %"]}, "zipf qd=8", **QUICK)
    assert "the lifetimes of 2 of 2 runs do not include the cost of cleaning" in short.about
    assert max(short["lifetime.regained"]) < 0.1  # type: ignore[type-var, operator]


def test_only_columns_with_values_are_given_to_others(table: nv.SweepTable) -> None:
    frame = table.polars()
    assert all(frame[name].null_count() < len(frame) for name in frame.columns)
    assert "waf" in frame.columns and "durable.record_bytes" not in frame.columns
    assert frame.columns == table.columns == table[:2].columns == table.arrow().column_names
    # What no point has can be asked for all the same.
    assert "program.time_s" not in table.columns and table["program.time"] == [None] * 6
    assert "error" not in table.columns and table[0]["ftl.spare"] == 0.1
