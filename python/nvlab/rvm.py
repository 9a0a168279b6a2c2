"""Recoverable memory: a part of a file as memory that survives, changed in transactions; after a crash it holds exactly what was
committed (`docs/rvm.md`).

A folder has a log and segments. A region is a segment in memory: it is read like `bytes`, and changed inside a transaction::

    import nvlab.rvm as rvm

    with rvm.open("accounts") as store:
        accounts = store.map("accounts", 1 << 20)     # 1 MiB of zeros, the first time
        with store.transaction() as tx:
            tx.write(accounts, 0, b"hello")           # durable when the block ends

What happens if it does not end:

>>> import struct, tempfile
>>> folder = tempfile.mkdtemp()
>>> store = open(folder)
>>> accounts = store.map("accounts", 1 << 20)
>>> with accounts.transaction() as tx:
...     balance = tx.range(0, 16)              # writable memory: a balance, and how many deposits
...     struct.pack_into("<QQ", balance, 0, 5, 1)
>>> struct.unpack("<QQ", accounts[0:16])
(5, 1)
>>> with accounts.transaction() as tx:
...     tx[0:8] = struct.pack("<Q", 1000)
...     raise RuntimeError("changed my mind")
Traceback (most recent call last):
...
RuntimeError: changed my mind
>>> struct.unpack("<Q", accounts[0:8])     # an exception undoes the transaction
(5,)
>>> store.close()
>>> with open(folder) as store:            # as after a crash: what was committed is there
...     struct.unpack("<QQ", store.map("accounts", 1 << 20)[0:16])
(5, 1)

Transactions of several threads are the program's business: two that change the same bytes leave those of the later one. A commit
is one write and one sync of the log; `flush=False` leaves the sync to the next one that has it, without which none survives alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from . import _nvlab
from ._errors import InputError

__all__ = ["Region", "Store", "Transaction", "open"]


class Store:
    """A folder with a log and segments, open. One program at a time has it."""

    def __init__(self, inner: _nvlab.RvmStore) -> None:
        self._inner = inner
        self._regions: list[Region] = []

    def map(self, segment: str, size_bytes: int) -> Region:
        """A segment as memory; it is created, all zeros, if it does not exist."""
        region = Region(self, self._inner.map(segment, size_bytes), size_bytes)
        self._regions.append(region)
        return region

    @contextmanager
    def transaction(self, *, flush: bool = True) -> Iterator[Transaction]:
        """Changes of any regions of the store, all of them or none: committed where the block ends, undone by an exception.
        With `flush` they are durable then."""
        transaction = Transaction()
        yield transaction
        self._inner.commit(transaction.taken(), flush)

    def flush(self) -> None:
        """Waits until everything committed is durable."""
        self._inner.flush()

    def truncate(self) -> None:
        """Applies the log to the segments and empties it; this happens automatically when the log is half full."""
        self._inner.truncate()

    @property
    def recovered_commits(self) -> int:
        """Commits that were in the log when it was opened."""
        return self._inner.recovery()[0]

    def close(self) -> None:
        """Closes the folder; its regions can no longer be used."""
        for region in self._regions:
            region._inner.close()
        self._regions.clear()
        self._inner.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class Region:
    """A segment in memory."""

    def __init__(self, store: Store, inner: _nvlab.RvmRegion, size_bytes: int) -> None:
        self._store = store
        self._inner = inner
        self._bytes = size_bytes

    def __len__(self) -> int:
        return self._bytes

    def __getitem__(self, place: slice | int) -> bytes | int:
        """The bytes last committed."""
        if isinstance(place, int):
            return self.read(place % self._bytes if place < 0 else place, 1)[0]
        start, count = _range(place, self._bytes)
        return self.read(start, count)

    def read(self, offset: int, count: int) -> bytes:
        """Its length in bytes."""
        return self._inner.read(offset, count)

    @contextmanager
    def transaction(self, *, flush: bool = True) -> Iterator[RegionTransaction]:
        """Changes of this region, all of them or none: committed where the block ends, undone by an exception."""
        with self._store.transaction(flush=flush) as whole:
            yield RegionTransaction(self, whole)


class Transaction:
    """Changes not yet committed."""

    def __init__(self) -> None:
        # What is changed of each region: where, and the bytes. Ranges of a region do not overlap.
        self._ranges: dict[Region, dict[int, bytearray]] = {}
        self._lent: list[memoryview] = []

    def range(self, region: Region, offset: int, count: int) -> memoryview:
        """Bytes of a region as writable memory until the transaction ends."""
        ranges = self._ranges.setdefault(region, {})
        for start, changed in ranges.items():
            if start <= offset and offset + count <= start + len(changed):
                return self._lend(changed, offset - start, count)
            if start < offset + count and offset < start + len(changed):
                raise InputError(f"{count} B at {offset} overlap {len(changed)} B at {start} of this transaction: ask for both")
        ranges[offset] = bytearray(region.read(offset, count))
        return self._lend(ranges[offset], 0, count)

    def _lend(self, changed: bytearray, start: int, count: int) -> memoryview:
        view = memoryview(changed)[start : start + count]
        self._lent.append(view)
        return view

    def write(self, region: Region, offset: int, data: bytes | bytearray | memoryview) -> None:
        """Writes bytes."""
        data = bytes(data)
        ranges = self._ranges.setdefault(region, {})
        if not data or offset < 0 or offset + len(data) > len(region):
            # Nothing, or what the region refuses in its own words.
            region.read(offset, len(data)) if offset >= 0 else region.read(len(region), 1)
            return
        gaps = [(offset, offset + len(data))]
        for start, changed in sorted(ranges.items()):
            low, high = max(start, offset), min(start + len(changed), offset + len(data))
            if low < high:
                changed[low - start : high - start] = data[low - offset : high - offset]
                gap_start, gap_end = gaps.pop()
                gaps += [(gap_start, low), (high, gap_end)]
        for low, high in gaps:
            if low < high:
                ranges[low] = bytearray(data[low - offset : high - offset])

    def read(self, region: Region, offset: int, count: int) -> bytes:
        """Bytes of a region with the changes of this transaction."""
        read = bytearray(region.read(offset, count))
        for start, changed in self._ranges.get(region, {}).items():
            low, high = max(start, offset), min(start + len(changed), offset + count)
            if low < high:
                read[low - offset : high - offset] = changed[low - start : high - start]
        return bytes(read)

    def taken(self) -> list[tuple[_nvlab.RvmRegion, int, bytes]]:
        """All changes; borrowed memory can no longer be written."""
        all_changes = [
            (region._inner, start, bytes(changed))
            for region, ranges in self._ranges.items()
            for start, changed in sorted(ranges.items())
        ]
        for view in self._lent:
            view.release()
        return all_changes


class RegionTransaction:
    """Changes of one region not yet committed."""

    def __init__(self, region: Region, whole: Transaction) -> None:
        self._region = region
        self._whole = whole

    def range(self, offset: int, count: int) -> memoryview:
        """Bytes as writable memory until the transaction ends."""
        return self._whole.range(self._region, offset, count)

    def write(self, offset: int, data: bytes | bytearray | memoryview) -> None:
        """Writes bytes."""
        self._whole.write(self._region, offset, data)

    def __getitem__(self, place: slice) -> bytes:
        """Bytes with the changes of this transaction."""
        return self._whole.read(self._region, *_range(place, len(self._region)))

    def __setitem__(self, place: slice, data: bytes | bytearray | memoryview) -> None:
        """Writes as many bytes as the slice has."""
        start, count = _range(place, len(self._region))
        if count != len(data):
            raise InputError(f"{len(data)} B do not fill a slice of {count} B")
        self.write(start, data)


def _range(place: slice, size: int) -> tuple[int, int]:
    start, end, step = place.indices(size)
    if step != 1:
        raise InputError("a slice of a region has no step")
    return start, max(0, end - start)


def open(folder: str | os.PathLike[str], *, log_bytes: int = 4 << 20) -> Store:
    """Opens the store of a folder, which is created if it does not exist, and recovers it after a crash. `log_bytes` is the size of
    a new log; a transaction takes at most half of it."""
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    return Store(_nvlab.RvmStore(path, log_bytes))
