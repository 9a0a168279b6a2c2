"""The command of the package."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import nvlab as nv
import pytest

NVLAB = [sys.executable, "-m", "nvlab"]


def test_it_is_the_same_program(folder: Path) -> None:
    assert nv.cli(["--version"]).stdout.split() == ["nvlab", nv.VERSION]
    assert nv.cli(["explain", "waf"]).stdout == nv.explain("waf")
    with pytest.raises(nv.CommandError, match="did you mean `greedy`") as caught:
        nv.cli(["run", "ssd-tlc", "-s", "ftl.clean.kind=gredy", "-w", "zipf"])
    assert caught.value.status == 2
    listed = json.loads(nv.cli(["design", "list", "--json"]).stdout)
    assert [row["name"] for row in listed["rows"]] == nv.designs()["name"]


def test_a_reader_that_has_gone_ends_it_quietly() -> None:
    child = subprocess.Popen([*NVLAB, "explain"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert child.stdout is not None and child.stderr is not None
    child.stdout.close()
    error = child.stderr.read()
    child.stderr.close()
    assert (child.wait(timeout=20), error) == (141, b"")


def test_ctrl_c_ends_it(folder: Path) -> None:
    words = ["run", "bench-4g", "-w", "uniform qd=8", "--until", "100 x capacity", "--precondition", "fresh"]
    child = subprocess.Popen(
        [*NVLAB, *words, "--no-cache", "-o", str(folder / "runs")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    while not (folder / "runs").exists():
        time.sleep(0.01)
    child.send_signal(signal.SIGINT)
    _, error = child.communicate(timeout=30)
    assert child.returncode == 130 and "interrupted; no run was finished" in error


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="needs memory for copies of a device")
def test_power_cuts(folder: Path) -> None:
    program = folder / "program.sh"
    program.write_text('test "$NVLAB_PHASE" = run || exit 0\nprintf hello | dd of="$NVLAB_DEV" conv=notrunc,fsync 2>&1\n')
    if not os.access("/dev/fuse", os.W_OK) or shutil.which("fusermount3") is None:
        pytest.skip("needs FUSE")
    words = ["sh", program]
    cuts = nv.cut("ssd-mlc-2010", words, cuts=5, fuse=folder / "dev", save=folder / "failure.nvcut")
    assert cuts and cuts.cuts > 0 and cuts.operations > 0 and cuts.saved is None
    with pytest.raises(nv.DesignError):
        nv.cut("ssd-mlc-2011", words)
