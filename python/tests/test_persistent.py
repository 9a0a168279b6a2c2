"""Persistent heaps and recoverable memory: against plain objects, and killed at any time."""

from __future__ import annotations

import os
import random
import signal
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import nvlab as nv
import nvlab.heap
import nvlab.rvm
import pytest

VALUES: list[Any] = [
    None, True, False, 0, -1, 2**63 - 1, -(2**63), 2**63, -(10**40), 0.5, float("inf"), "", "text", "Ünï\0cödé",
    b"", b"\x00\xff" * 9, [], [1, [2, {"three": 3}]], {}, {"a": {"b": [None]}},
]  # fmt: skip


def test_values_come_back_as_they_were(folder: Path) -> None:
    with nvlab.heap.open(folder / "heap") as heap:
        heap["all"] = VALUES
        for number, value in enumerate(VALUES):
            heap[f"{number:02}"] = value
    with nvlab.heap.open(folder / "heap") as heap:
        assert heap["all"].copy() == VALUES
        for number, value in enumerate(VALUES):
            found = heap[f"{number:02}"]
            plain = found.copy() if isinstance(value, (list, dict)) else found
            assert plain == value and type(plain) is type(value)
    checked = nv.cli(["heap", "check", str(folder / "heap")])
    assert "undamaged" in checked.stdout


def test_a_heap_against_a_plain_dict(folder: Path) -> None:
    draw = random.Random(1)
    plain: dict[str, Any] = {"list": []}
    heap = nvlab.heap.open(folder / "heap")
    heap["list"] = []
    for step in range(600):
        undone = draw.random() < 0.3
        before = {**plain, "list": list(plain["list"])}
        try:
            with heap.transaction():
                for _ in range(draw.randrange(1, 5)):
                    _change(draw, plain, heap)
                if undone:
                    raise InterruptedError
        except InterruptedError:
            plain = before
        if step % 50 == 0:
            assert heap.copy() == plain and sorted(plain) == list(heap)
        if step % 200 == 199:
            heap.close()
            heap = nvlab.heap.open(folder / "heap")
    assert heap == plain
    heap.close()
    assert "undamaged" in nv.cli(["heap", "check", str(folder / "heap")]).stdout


def _change(draw: random.Random, plain: dict[str, Any], heap: nvlab.heap.Heap) -> None:
    name, value, items = f"key {draw.randrange(20)}", draw.choice(VALUES), plain["list"]
    at = draw.randrange(len(items) + 1)
    match draw.randrange(6):
        case 0 | 1:
            plain[name] = heap[name] = value
        case 2:
            assert plain.pop(name, "none") == heap.pop(name, "none")
        case 3:
            items.insert(at, value)
            heap["list"].insert(at, value)
        case 4 if at < len(items):
            del items[at], heap["list"][at]
        case 5 if at < len(items):
            items[at] = heap["list"][at] = value


def test_what_a_heap_refuses(folder: Path) -> None:
    with nvlab.heap.open(folder / "heap") as heap:
        with pytest.raises(TypeError, match="not set"):
            heap["a"] = {1, 2}
        with pytest.raises(TypeError, match="keys of a persistent dict are texts"):
            heap["a"] = {1: 2}
        with pytest.raises(KeyError):
            heap["a"]
        heap["list"] = [1]
        with pytest.raises(IndexError):
            heap["list"][1]
        with pytest.raises(nv.BusyError):
            nvlab.heap.open(folder / "heap")
        # A cycle is stored; it cannot be copied out.
        heap["list"].append(heap["list"])
        with pytest.raises(nv.PersistenceError, match="contain themselves"):
            heap.copy()
        for other in [nvlab.heap.open(folder / f"other {number}") for number in range(5)]:
            other["from another heap"] = heap["list"][:1]
            other.close()
    with pytest.raises(nv.PersistenceError, match="closed"):
        heap["a"]
    (folder / "no heap").write_bytes(b"x" * 200_000)
    with pytest.raises(nv.DamagedError):
        nvlab.heap.open(folder / "no heap")


def test_heaps_are_opened_in_any_order(folder: Path) -> None:
    """Each open heap has a brand of the extension's own; the file does not depend on which one made it."""
    heaps = [nvlab.heap.open(folder / f"{number}") for number in range(4)]
    for number, heap in enumerate(heaps):
        heap["number"] = [number]
        heap.close()
    for number in (3, 1, 2, 0):
        with nvlab.heap.open(folder / f"{number}") as heap, nvlab.heap.open(folder / f"{(number + 1) % 4}") as other:
            assert heap.copy() == {"number": [number]} and other.copy() == {"number": [(number + 1) % 4]}
    assert "undamaged" in nv.cli(["heap", "check", str(folder / "3")]).stdout


def test_objects_of_a_transaction_that_was_undone(folder: Path) -> None:
    with nvlab.heap.open(folder / "heap") as heap:
        with pytest.raises(ZeroDivisionError), heap.transaction():
            heap["new"] = [1]
            kept = heap["new"]
            assert kept[0] == 1
            raise ZeroDivisionError
        with pytest.raises(nv.PersistenceError, match="undone"):
            len(kept)
        heap["new"] = [2]
        gone = heap["new"]
        del heap["new"]
        # It lives as long as the program holds it, but it is in the heap no more.
        assert gone.copy() == [2]
        with pytest.raises(nv.PersistenceError, match="was removed"):
            heap["again"] = gone


def test_threads_take_turns(folder: Path) -> None:
    with nvlab.heap.open(folder / "heap") as heap:
        heap["count"] = 0

        def work() -> None:
            for _ in range(50):
                with heap.transaction():
                    heap["count"] += 1

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert heap["count"] == 200


KILLED_HEAP = """
import sys, nvlab.heap
heap = nvlab.heap.open(sys.argv[1])
heap.setdefault("entries", [])
number = len(heap["entries"])
while True:
    with heap.transaction():
        heap["entries"].append({"number": number, "twice": str(number * 2)})
        heap["last"] = number
    print(number, flush=True)
    number += 1
"""

KILLED_RVM = """
import struct, sys, nvlab.rvm
store = nvlab.rvm.open(sys.argv[1], log_bytes=1 << 16)
one, two = store.map("one", 1 << 16), store.map("two", 1 << 16)
number = struct.unpack("<Q", one[0:8])[0]
while True:
    number += 1
    with store.transaction() as tx:
        struct.pack_into("<Q", tx.range(one, 0, 8), 0, number)
        tx.write(two, number % 1000 * 8, struct.pack("<Q", number))
    print(number, flush=True)
"""


def _kill(code: str, path: Path, draw: random.Random) -> int:
    """Kills a program at some moment; returns the last number that it acknowledged."""
    child = subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    lines = [child.stdout.readline()]
    end = time.monotonic() + draw.uniform(0.0, 0.15)
    while time.monotonic() < end:
        lines.append(child.stdout.readline())
    os.kill(child.pid, signal.SIGKILL)
    lines += child.stdout.readlines()
    child.stdout.close()
    assert child.wait(timeout=10) == -signal.SIGKILL
    return max(int(line) for line in lines if line.endswith("\n"))


def test_a_heap_survives_kill_9(folder: Path) -> None:
    draw = random.Random(2)
    for _ in range(8):
        acknowledged = _kill(KILLED_HEAP, folder / "heap", draw)
        with nvlab.heap.open(folder / "heap") as heap:
            entries = heap["entries"].copy()
            assert len(entries) in (acknowledged + 1, acknowledged + 2), "all that was acknowledged, and at most one more"
            assert entries == [{"number": at, "twice": str(at * 2)} for at in range(len(entries))]
            assert heap["last"] == len(entries) - 1
    assert "undamaged" in nv.cli(["heap", "check", str(folder / "heap")]).stdout


def test_recoverable_memory_survives_kill_9(folder: Path) -> None:
    draw = random.Random(3)
    for _ in range(8):
        acknowledged = _kill(KILLED_RVM, folder / "store", draw)
        with nvlab.rvm.open(folder / "store") as store:
            number = struct.unpack("<Q", store.map("one", 1 << 16)[0:8])[0]
            assert number in (acknowledged, acknowledged + 1)
            table = struct.unpack("<1000Q", store.map("two", 1 << 16)[0:8000])
            # The last number of each remainder.
            assert list(table) == [max(range(at, number + 1, 1000), default=0) for at in range(1000)]
    assert "commits" in nv.cli(["log", "stat", str(folder / "store/log")]).stdout


def test_regions_against_plain_bytes(folder: Path) -> None:
    draw = random.Random(4)
    plain = bytearray(4096)
    store = nvlab.rvm.open(folder / "store", log_bytes=1 << 16)
    region = store.map("bytes", 4096)
    for step in range(300):
        changed = bytearray(plain)
        undone = draw.random() < 0.3
        try:
            with region.transaction(flush=draw.random() < 0.5) as tx:
                for _ in range(draw.randrange(1, 6)):
                    at = draw.randrange(4096)
                    data = draw.randbytes(draw.randrange(1, min(200, 4097 - at)))
                    tx[at : at + len(data)] = data
                    changed[at : at + len(data)] = data
                    low, high = sorted(draw.randrange(4097) for _ in range(2))
                    assert tx[low:high] == changed[low:high]
                if undone:
                    raise InterruptedError
        except InterruptedError:
            pass
        else:
            plain = changed
        assert region[0:4096] == plain
        if step % 100 == 99:
            store.close()
            store = nvlab.rvm.open(folder / "store")
            region = store.map("bytes", 4096)
    store.close()
    with pytest.raises(nv.PersistenceError, match="closed"):
        region[0:1]


def test_what_recoverable_memory_refuses(folder: Path) -> None:
    with nvlab.rvm.open(folder / "store", log_bytes=1 << 16) as store:
        region = store.map("bytes", 4096)
        with pytest.raises(nv.PersistenceError, match="the region has 4096 B"), region.transaction() as tx:
            tx.write(4095, b"xy")
        with region.transaction() as tx:
            view = tx.range(0, 8)
            with pytest.raises(nv.InputError, match="overlap"):
                tx.range(4, 8)
            assert tx.range(2, 2).nbytes == 2
        with pytest.raises(ValueError, match="released"):
            view[0] = 1
        with pytest.raises(nv.InputError, match="do not fill"), region.transaction() as tx:
            tx[0:4] = b"12345"
        with pytest.raises(nv.BusyError):
            nvlab.rvm.open(folder / "store")
        large = store.map("large", 1 << 20)
        with pytest.raises(nv.PersistenceError, match="the log takes at most"), large.transaction() as tx:
            tx.write(0, b"x" * (1 << 20))
        assert large[0] == 0
    (folder / "store/log").write_bytes(b"x" * 65536)
    with pytest.raises(nv.DamagedError):
        nvlab.rvm.open(folder / "store")
