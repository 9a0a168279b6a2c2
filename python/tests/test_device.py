"""Devices that a program holds."""

from __future__ import annotations

import gc
import threading
from array import array

import nvlab as nv
import pytest

BYTES = 4096


def test_batches_are_a_run() -> None:
    plain = nv.run("bench-4g", "zipf read=30% qd=8", until="20000 io", precondition="full", seed=3, cache=False)
    with nv.device("bench-4g", precondition="full", seed=3, cache=False) as ssd:
        answers = ssd.run("zipf read=30% qd=8", until="20000 io", seed=3)
        found = ssd.result()
    assert len(answers) == 20000
    assert found.write_amplification == plain.write_amplification
    assert found.latency("read") == plain.latency("read") and found.latency("write") == plain.latency("write")
    assert found.key != plain.key and found.design == plain.design
    assert max(answers["response_ps"]) // 1000 <= plain.latency("write").max_ns + 1  # type: ignore[type-var, operator]


def test_state_is_kept_between_batches() -> None:
    with nv.device("bench-4g") as ssd:
        one = ssd.submit(op="write", offset=range(0, 100 * BYTES, BYTES), bytes=BYTES, depth=4)
        before = ssd.counters
        ssd.idle("5 ms")
        two = ssd.submit(op="read", offset=[0] * 10, bytes=BYTES)
        assert before.host_bytes == 100 * BYTES == ssd.counters.host_bytes
        assert before.requests == 100 and ssd.counters.requests == 110
        assert two["time_ps"][0] >= one["time_ps"][-1] + 5 * 10**9  # type: ignore[operator]
        # A read of what was never written takes no flash: it is faster.
        never = ssd.submit(op="read", offset=[1 << 30], bytes=BYTES)
        assert never["response_ps"][0] < two["response_ps"][0]  # type: ignore[operator]
        # One after the other: each begins where the last ended.
        at, took = two["time_ps"], two["response_ps"]
        assert all(at[row] == at[row - 1] + took[row - 1] for row in range(1, 10))  # type: ignore[operator]
        blocks = ssd.blocks()
        assert sum(blocks["erases"]) == 0 and 0 < sum(blocks["live"]) <= 1  # type: ignore[arg-type]


def test_every_way_to_give_requests() -> None:
    columns = {"time_us": [0, 100, 200], "op": ["write", "write", "read"], "offset_bytes": [0, BYTES, 0]}
    frame = nv.Table.of_columns({**columns, "length_bytes": [BYTES] * 3})
    ways = {
        "lists": {"op": ["write", "write", "read"], "offset": [0, BYTES, 0], "bytes": [BYTES] * 3},
        "buffers": {"op": bytes([1, 1, 0]), "offset": array("Q", [0, BYTES, 0]), "bytes": array("I", [BYTES] * 3)},
        "signed": {"op": array("B", [1, 1, 0]), "offset": array("q", [0, BYTES, 0]), "bytes": array("i", [BYTES] * 3)},
        "one for all": {"op": ("write", "write", "read"), "offset": [0, BYTES, 0], "bytes": BYTES},
    }
    tables = []
    for way in ways.values():
        with nv.device("bench-4g") as ssd:
            tables.append(ssd.submit(**way, at_ns=[0, 100_000, 200_000]).arrow())  # type: ignore[arg-type]
    with nv.device("bench-4g") as ssd:
        tables += [ssd.submit(frame).arrow()]
    assert all(table == tables[0] for table in tables[1:])
    with nv.device("bench-4g") as ssd:
        tables += [ssd.run(nv.trace(frame)).arrow()]
        polars = pytest.importorskip("polars")
        answers = ssd.submit(polars.DataFrame(frame), depth=2)
        # What comes back is a trace, too.
        assert len(ssd.submit(answers, depth=1)) == 3
        assert len(ssd.run(nv.trace(answers))) == 3
    assert tables[-1] == tables[0]


def test_what_was_flushed_survives_a_cut() -> None:
    with nv.device("bench-4g", data=True) as ssd:
        ssd.write(0, b"a" * BYTES, fua=True)
        ssd.write(BYTES, b"b" * BYTES)
        recovery = ssd.cut()
        assert recovery.time_s > 0 and recovery.nand_reads > 0
        assert ssd.read(0, BYTES) == b"a" * BYTES
        assert ssd.read(1 << 30, 3) == bytes(3)
        assert ssd.counters.requests == 2
        assert ssd.trim(0, BYTES) >= 0 and ssd.read(0, BYTES) == bytes(BYTES)
    with nv.device("bench-4g") as ssd:
        for refused in (ssd.cut, lambda: ssd.write(0, b"x"), lambda: ssd.read(0, 1)):
            with pytest.raises((nv.Unsupported, nv.InputError), match="(keeps?|store) no bytes"):
                refused()


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"op": "write", "offset": [0, BYTES], "bytes": [BYTES]}, "2 operations, and 1 values of `bytes`"),
        ({"op": "write", "offset": [0], "bytes": [0]}, "only a flush has 0 bytes"),
        ({"op": "flush", "offset": [0], "bytes": [1]}, "a flush has 0 bytes"),
        ({"op": "wirte", "offset": [0], "bytes": [1]}, "'wirte' is not an operation"),
        ({"op": bytes([9]), "offset": [0], "bytes": [1]}, "9 is not an operation"),
        ({"op": "read", "offset": [0], "bytes": 1, "at_ns": [0], "depth": 1}, "not both"),
        ({"op": "read", "offset": [0, 0], "bytes": 1, "at_ns": [5, 1]}, "it is issued before the previous one"),
        ({"op": "read", "offset": [1 << 40], "bytes": 1}, "capacity|beyond|device"),
        ({"op": "read", "bytes": 1}, "op, offset and bytes"),
    ],
)
def test_wrong_requests(given: dict[str, object], why: str) -> None:
    with nv.device("bench-4g") as ssd:
        with pytest.raises((nv.InputError, nv.WorkloadError), match=why):
            ssd.submit(**given)  # type: ignore[arg-type]
        with pytest.raises(OverflowError):
            ssd.submit(op="read", offset=array("q", [-1]), bytes=1)
        assert ssd.counters.requests == 0


def test_a_closed_device_says_so() -> None:
    ssd = nv.device("bench-4g")
    ssd.close()
    ssd.close()
    with pytest.raises(nv.InputError, match="closed"):
        ssd.flush()
    with pytest.raises(nv.RunError, match="no requests"):
        nv.device("bench-4g").result()
    with pytest.raises(nv.Unsupported, match=r"path\.stages"):
        nv.device("ssd-tlc,path.stages=io-uring")
    with pytest.raises(nv.InputError, match="is not a state"):
        nv.device("bench-4g", precondition="ful")


def test_other_threads_go_on_and_an_exception_ends_a_batch() -> None:
    turns = 0
    stop = threading.Event()

    def count() -> None:
        nonlocal turns
        while not stop.is_set():
            turns += 1
            stop.wait(0.001)

    class Enough(Exception):
        pass

    def report(done: int, asked: int, running: list[tuple[str, str, float]]) -> None:
        if running:
            raise Enough

    other = threading.Thread(target=count)
    other.start()
    with nv.device("bench-4g", progress=report) as ssd:
        with pytest.raises(Enough):
            ssd.run("uniform qd=8", until="1000 x capacity", answers=False)
        served = ssd.counters.requests
        assert 0 < served < 10**9 and turns > 10
        # It goes on from there.
        ssd.flush()
        assert ssd.counters.requests == served + 1
    stop.set()
    other.join()


def test_many_batches_take_no_more_memory() -> None:
    resource = pytest.importorskip("resource")

    def peak_kib() -> int:
        gc.collect()
        return int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)

    offset = array("Q", range(0, 4096 * 4096, 4096))
    frame = nv.Table.of_columns({"time_us": [0], "op": ["read"], "offset_bytes": [0], "length_bytes": [4096]})
    with nv.device("bench-4g") as ssd:
        for turn in range(60):
            ssd.submit(op="write", offset=offset, bytes=4096, depth=8)
            ssd.submit(frame)
            if turn == 9:
                before = peak_kib()
        assert peak_kib() - before < 16 << 10
