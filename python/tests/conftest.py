"""What the tests share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import nvlab as nv
import pytest

#: Small and quick: a drive of 4 GiB, new.
QUICK = {"until": "20000 io", "precondition": "fresh"}

#: A file of one figure.
DRIVE = """\
schema = 1
[drive]
name = "d"
capacity = "480 GB"
interface = "SATA"
class = "data-centre"
cells = "TLC"
[[figure]]
what = "sequential read"
value = "530 MB/s"
"""


@pytest.fixture(scope="session")
def result() -> nv.Result:
    """A run that others look at: reads and writes on a drive that has been written once."""
    return nv.run("bench-4g", "zipf read=50% bs=4KiB qd=8", until="2 x capacity", precondition="full")


@pytest.fixture(scope="session")
def table() -> nv.SweepTable:
    """A sweep that others look at."""
    axes = {"ftl.clean.kind": ["greedy", "fifo"], "ftl.spare": nv.arange("10 %", "30 %", "10 %")}
    return nv.sweep("bench-4g", axes, "zipf qd=8", until="200000 io", precondition="full")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder for what a test writes."""
    yield tmp_path
