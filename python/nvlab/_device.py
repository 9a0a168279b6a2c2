"""Devices that a program opens and uses."""

from __future__ import annotations

import os
from array import array
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Literal, NamedTuple, TypeAlias

from . import _nvlab
from ._design import Design, design as read_design
from ._errors import InputError
from ._frame import ArrowStream, ipc_of
from ._html import facts
from ._progress import Progress, Reporter
from ._result import Result
from ._run import AnyDesign, AnyWorkload, Options, State, settings, text_of_workload
from ._table import Table
from ._text import text_of

#: The numbers of operations.
_CODES = {"read": 0, "write": 1, "trim": 2, "flush": 3}

#: An operation for all requests, or one for each: names, or a buffer of their numbers (read 0, write 1, trim 2, flush 3).
Ops: TypeAlias = "str | Sequence[str] | bytes | bytearray | memoryview | array[int]"
#: Whole numbers: a sequence, or anything with a buffer of 32 or 64 bits each (`array.array`, an array of NumPy).
Numbers: TypeAlias = Any


class Counters(NamedTuple):
    """Counts of a device since it was opened, or since the last power cut."""

    #: Requests.
    requests: int
    #: Bytes the host wrote, in whole units of the map.
    host_bytes: int
    #: Bytes programmed, whatever the cause.
    programmed_bytes: int
    #: Blocks erased.
    erases: int

    @property
    def write_amplification(self) -> float:
        """Bytes programmed for each byte the host wrote; 0 if it wrote nothing."""
        return self.programmed_bytes / self.host_bytes if self.host_bytes else 0.0


class Recovery(NamedTuple):
    """Cost of the recovery after a power cut."""

    #: Seconds until the device served requests again.
    time_s: float
    #: Pages of NAND that were read.
    nand_reads: int


class Device:
    """A simulated device between batches of requests; `device` opens one. Its time is simulated: a batch begins when the one
    before is done. It is closed at the end of a `with` block.

    A batch returns a table with a row for each request: `time_ps` (when the host issued it, since the device was opened), `op`,
    `offset_bytes`, `length_bytes`, `volume`, `fua`, `response_ps` (its latency). Such a table is also a trace and a workload.

    >>> import nvlab as nv
    >>> with nv.device("bench-4g") as ssd:
    ...     written = ssd.submit(op="write", offset=range(0, 1 << 20, 4096), bytes=4096, depth=8)
    ...     read = ssd.submit(op="read", offset=[0, 4096], bytes=4096, at_ns=[0, 500_000])
    ...     len(written), read["op"], read["time_ps"][1] - read["time_ps"][0], ssd.counters.host_bytes
    (256, ['read', 'read'], 500000000, 1048576)
    """

    def __init__(self, inner: _nvlab.Device, design: Design, progress: Progress) -> None:
        self._inner = inner
        self._progress = progress
        #: Its design.
        self.design = design

    def run(
        self,
        workload: AnyWorkload,
        *,
        until: str | None = None,
        seed: int = 1,
        answers: bool = True,
    ) -> Table:
        """Serves a workload until its end, or until a limit as for `run`; by default one capacity. With `answers=False` the table is
        empty: a row takes 31 bytes.

        >>> import nvlab as nv
        >>> with nv.device("bench-4g", precondition="full") as ssd:
        ...     first = ssd.run("uniform qd=8", until="20000 io")
        ...     then = ssd.run(nv.workload("uniform", rate="20k/s"), until="20000 io")
        ...     len(then), ssd.counters.requests
        (20000, 40000)
        """
        with Reporter(self._progress) as reporter:
            text = text_of_workload(workload)
            return self._table(self._inner.run(text, until, seed, answers, reporter.report))

    def submit(
        self,
        requests: ArrowStream | None = None,
        *,
        op: Ops | None = None,
        offset: Numbers = None,
        bytes: Numbers = None,
        at_ns: Numbers = None,
        depth: int | None = None,
    ) -> Table:
        """Serves requests that are given column by column, or a data frame with the columns of a trace (`trace`). One `op`, or
        one number of `bytes`, is for all. They are served in a closed loop of `depth` (1 by default), or each at its
        time: `at_ns`, since the beginning of the batch, or the times of the frame.

        Buffers (`array.array`, arrays of NumPy) cross as they are, without a call for each number.

        >>> import array, nvlab as nv
        >>> with nv.device("bench-4g") as ssd:
        ...     t = ssd.submit(op=["write", "flush", "read"], offset=[0, 0, 0], bytes=[4096, 0, 4096])
        ...     u = ssd.submit(op="read", offset=array.array("Q", [0, 4096]), bytes=4096, depth=2)
        ...     t["op"], len(u)
        (['write', 'flush', 'read'], 2)
        """
        with Reporter(self._progress) as reporter:
            if requests is not None:
                if not (op is None and offset is None and bytes is None and at_ns is None):
                    raise InputError("requests are a data frame or columns, not both")
                return self._table(self._inner.submit_table(ipc_of(requests), depth, reporter.report))
            if op is None or offset is None or bytes is None:
                raise InputError("requests have op, offset and bytes")
            if at_ns is not None and depth is not None:
                raise InputError("at_ns is an open loop, depth a closed one: not both")
            if isinstance(offset, range):
                offset = array("Q", offset)
            count = len(offset)
            if isinstance(bytes, int):
                bytes = array("Q", [bytes]) * count
            loop = (depth or 1) if at_ns is None else None
            frame = self._inner.submit(_codes(op, count), offset, bytes, at_ns, loop, reporter.report)
            return self._table(frame)

    def write(self, offset: int, data: bytes | bytearray | memoryview, *, fua: bool = False) -> float:
        """Writes bytes, and returns the latency in ns; with `fua` they are durable when it returns. It needs `data=True`.

        >>> import nvlab as nv
        >>> with nv.device("bench-4g", data=True) as ssd:
        ...     latencies_ns = [ssd.write(4096, b"hello"), ssd.flush()]
        ...     recovery = ssd.cut()
        ...     recovery.time_s > 0, ssd.read(4096, 5)
        (True, b'hello')
        """
        latency_ns, _ = self._inner.one(_CODES["write"], offset, len(data), bytes(data), fua)
        return latency_ns

    def read(self, offset: int, count: int) -> bytes:
        """Reads bytes; those that were never written are zeros. It needs `data=True`."""
        _, read = self._inner.one(_CODES["read"], offset, count, b"", False)
        if len(read) < count:
            raise InputError("this device keeps no bytes: open it with data=True")
        return read

    def trim(self, offset: int, count: int) -> float:
        """Discards the whole units in a range; returns the latency in ns."""
        return self._inner.one(_CODES["trim"], offset, count, b"", False)[0]

    def flush(self) -> float:
        """Makes everything written before durable; returns the latency in ns."""
        return self._inner.one(_CODES["flush"], 0, 0, b"", False)[0]

    def idle(self, time: str) -> None:
        """Lets simulated time pass (`"10 ms"`): background work continues."""
        self._inner.idle(text_of(time))

    def cut(self) -> Recovery:
        """The power fails now, and returns: data accepted but not yet on the media is lost, operations in progress are torn. It
        needs `data=True`: a controller recovers from the contents of the media. Counts begin anew."""
        return Recovery(*self._inner.cut())

    @property
    def now_s(self) -> float:
        """Simulated seconds since it was opened."""
        return self._inner.standing()[0]

    @property
    def counters(self) -> Counters:
        """Its counts so far; reading them changes nothing."""
        return Counters(*self._inner.standing()[1:])

    def blocks(self) -> Table:
        """Each block of its flash: `block`, `erases` since it left the factory, and `live`, the share of it that holds data (missing
        where the controller does not count that); no rows without flash."""
        frame = self._inner.blocks()
        if frame is None:
            return Table.of_columns({"block": [], "erases": [], "live": []})
        return Table(frame, about=f"blocks of {self.design.name}")

    def result(self) -> Result:
        """Its measurements since it was opened, or since the last power cut, as for a run: write amplification, wear, lifetime,
        the map.
        It first waits until the device has finished all accepted work, so its time advances.

        >>> import nvlab as nv
        >>> with nv.device("bench-4g", precondition="full") as ssd:
        ...     empty = ssd.run("uniform qd=8", until="50000 io", answers=False)
        ...     r = ssd.result()
        ...     len(empty), r.metrics["write.count"], r.write_amplification >= 1
        (0, 50000.0, True)
        """
        return Result(self._inner.result())

    def close(self) -> None:
        """Closes the device and frees its memory. It may be closed twice."""
        self._inner.close()

    def __enter__(self) -> Device:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Literal[False]:
        self.close()
        return False

    def _table(self, frame: _nvlab.Frame) -> Table:
        return Table(frame, about=f"requests to {self.design.name}")

    def __repr__(self) -> str:
        return f"<Device {self.design.name}>"

    def _repr_html_(self) -> str:
        now = self.counters
        rows: list[tuple[str, object]] = [
            ("simulated time, s", f"{self.now_s:.6g}"),
            ("requests", f"{now.requests:,}"),
            ("write amplification", f"{now.write_amplification:.3g}"),
            ("erases", f"{now.erases:,}"),
        ]
        return facts([("design", self.design.name), *rows])


def _codes(op: Ops, count: int) -> bytes:
    """The number of the operation of each request."""
    try:
        if isinstance(op, str):
            return bytes([_CODES[op]]) * count
        if isinstance(op, (bytes, bytearray, memoryview, array)) or not isinstance(op, Sequence):
            return bytes(op)
        return bytes([_CODES[str(one)] for one in op])
    except KeyError as unknown:
        raise InputError(f"{unknown} is not an operation: {', '.join(_CODES)}") from None


def device(
    design: AnyDesign,
    *,
    precondition: State = "fresh",
    seed: int = 1,
    data: bool = False,
    cache: str | os.PathLike[str] | Literal[False] | None = None,
    progress: Progress = None,
) -> Device:
    """Opens a simulated device, preconditioned by writes of nvlab's own (`explain("steady-state")`). It keeps its state from batch to
    batch. With `data=True` its media keep what is written, in memory: bytes can be read back, and its power can fail. What
    prepared it reads as zeros.

    >>> import nvlab as nv
    >>> ssd = nv.device("bench-4g", precondition="full")
    >>> latencies = ssd.run("zipf read=70% qd=16", until="10000 io")["response_ps"]
    >>> ssd.close()
    """
    read = read_design(design)
    options: Options = {"cache": cache}
    with Reporter(progress) as reporter:
        inner = _nvlab.Device(read._inner, precondition, seed, data, settings(options), reporter.report)
    return Device(inner, read, progress)
