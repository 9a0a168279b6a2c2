"""Progress: one line that is rewritten, where somebody looks."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import types
from typing import Any

import nvlab as nv
import pytest

LONG = {"until": "8 x capacity", "precondition": "fresh", "cache": False}

CODE = """
import nvlab as nv
nv.run("bench-4g", "uniform qd=8", until="8 x capacity", precondition="fresh", cache=False{more})
print("done")
"""


def _on_a_terminal(more: str) -> tuple[str, str]:
    """What a program prints on stdout, and on a terminal that is its stderr."""
    mine, theirs = pty.openpty()
    child = subprocess.Popen([sys.executable, "-c", CODE.format(more=more)], stdout=subprocess.PIPE, stderr=theirs, text=True)
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(mine, 1 << 16)
        except OSError:  # its other end is closed
            break
        shown += part
        if not part:
            break
    os.close(mine)
    printed, _ = child.communicate(timeout=30)
    assert child.returncode == 0
    return printed, shown.decode()


def test_a_line_of_a_terminal_is_rewritten() -> None:
    printed, shown = _on_a_terminal("")
    assert printed == "done\n"
    assert "\n" not in shown and shown.count("\r") > 2 and "bench-4g" in shown and " %" in shown
    # The line is empty in the end.
    assert shown.endswith("\r") and shown.split("\r")[-2].strip() == ""


def test_nothing_is_printed_without_progress(capfd: pytest.CaptureFixture[str]) -> None:
    assert _on_a_terminal(", progress=False") == ("done\n", "")
    nv.run("bench-4g", "uniform qd=8", **LONG)  # no terminal
    assert capfd.readouterr() == ("", "")


def test_an_output_of_a_notebook_is_replaced(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    shown: list[str] = []

    class Handle:
        def update(self, data: dict[str, str], raw: bool) -> None:
            assert raw
            shown.append(data["text/plain"])

    def display(data: dict[str, str], raw: bool, display_id: bool) -> Handle:
        assert raw and display_id and not shown, "one output, then updates of it"
        shown.append(data["text/plain"])
        return Handle()

    class ZMQInteractiveShell:
        pass

    ipython: Any = types.ModuleType("IPython")
    ipython.get_ipython = ZMQInteractiveShell
    ipython.display = types.ModuleType("IPython.display")
    ipython.display.display = display
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", ipython.display)
    nv.run("bench-4g", "uniform qd=8", **LONG)
    assert len(shown) > 2 and shown[0].startswith("bench-4g: ") and shown[-1] == ""
    assert capfd.readouterr() == ("", "")
    # A page that is made from a notebook shows results, not that something was under way.
    shown.clear()
    monkeypatch.setenv("NVLAB_NO_PROGRESS", "1")
    nv.run("bench-4g", "uniform qd=8", **LONG)
    assert shown == []
    nv.run("bench-4g", "uniform qd=8", progress=True, **LONG)
    assert shown[-1] == ""
