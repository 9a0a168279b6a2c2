"""From figures to a design, from needs to a design."""

from __future__ import annotations

import json
from pathlib import Path

import nvlab as nv
import pytest
from conftest import DRIVE

def fio(rate: float) -> dict[str, object]:
    side = {"iops": rate, "bw_bytes": rate * 4096, "io_bytes": rate * 4096, "lat_ns": {"mean": 4e5}}
    read = {**side, "clat_ns": {"percentile": {"99.000000": 9e5}}}
    options = {"rw": "randread", "bs": "4k", "iodepth": "32"}
    job = {"jobname": "r32", "groupid": 0, "error": 0, "job options": options, "read": read, "write": {}}
    return {"fio version": "fio-3.36", "global options": {"ioengine": "io_uring"}, "jobs": [job]}


def test_a_drive_of_a_figure_and_a_measurement(tmp_path: Path) -> None:
    file, measured = tmp_path / "d.toml", tmp_path / "r.json"
    file.write_text(DRIVE, encoding="utf-8")
    measured.write_text(json.dumps(fio(80e3)), encoding="utf-8")
    found = nv.fit(file, [measured], cache=False, progress=False)
    assert found.figures["figure"] == ["sequential read 128 KiB QD32", "random read 4 KiB QD32"]
    assert found.figures["mean_s"] == [None, pytest.approx(4e-4)]
    assert all(found.figures["within"]), str(found)
    assert found.design.capacity_bytes == pytest.approx(480e9, rel=1e-3)
    assert "read" in found.numbers["name"] and found.next
    assert nv.design(found.save(tmp_path / "mine.toml")).name.endswith("mine.toml")
    assert "What to measure next" in found.report(tmp_path / "page.html").read_text(encoding="utf-8")


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    file = tmp_path / "d.toml"
    file.write_text(DRIVE.replace("SATA", "SAT"), encoding="utf-8")
    with pytest.raises(nv.DesignError, match="interface"):
        nv.fit(file, progress=False)
    with pytest.raises(nv.InputError, match="state is one of"):
        nv.fit(file, state="stedy", progress=False)
    with pytest.raises(nv.InputError, match="ftl.spar"):
        nv.choose("bench-4g", {"ftl.spar": "8%..40%"}, "uniform", "capacity", progress=False)
    with pytest.raises(nv.InputError, match="not in a file"):
        nv.choose(nv.design(nv.template()), {"ftl.spare": "8%..40%"}, "uniform", "capacity", progress=False)


def test_no_design_that_meets_all_is_no_error() -> None:
    spare = {"ftl.spare": ["10 %", "20 %"]}
    until = {"until": "0.2 x capacity", "precondition": "full"}
    found = nv.choose("bench-4g", spare, "uniform qd=8", "capacity", ["waf < 1"], cache=False, progress=False, **until)  # type: ignore[arg-type]
    assert found.best == [] and found.table["meets"] == [False, False] and "none meets" in repr(found)
