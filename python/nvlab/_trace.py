"""Traces."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from . import _nvlab
from ._command import cli, document_of
from ._frame import ArrowStream, Tables, keep_tables, tables_of, text_of_frame
from ._errors import InputError
from ._html import facts
from ._table import Table
from ._text import Value
from ._workload import Workload, workload

#: Options of a trace that say how its file is read.
_READING = frozenset(
    ("action", "skip_bad", "columns", "separator", "header", "read", "write", "trim", "flush")
)

#: What `head` reads at least: recorders write requests a little out of order.
_HEAD_LINES = 65_536


class TraceInfo:
    """The statistics of a trace: requests and bytes of each kind, footprint, sizes, skew, gaps and rates; each figure is an
    attribute with its unit in the name. One that the trace does not have is `None`."""

    def __init__(self, origin: str, counts: list[tuple[str, int]], figures: list[tuple[str, float | None]]) -> None:
        self.origin = origin
        self._figures: dict[str, int | float | None] = {**dict(counts), **dict(figures)}

    def __getattr__(self, name: str) -> Any:
        figures: dict[str, int | float | None] = self.__dict__.get("_figures", {})
        if name in figures:
            return figures[name]
        raise AttributeError(f"a trace has no figure `{name}`: {', '.join(figures)}")

    def to_dict(self) -> dict[str, int | float | None]:
        """All figures by name."""
        return dict(self._figures)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._figures]

    def __repr__(self) -> str:
        return f"TraceInfo({', '.join(f'{name}={value!r}' for name, value in self._figures.items())})"

    def _repr_html_(self) -> str:
        return facts((name, "–" if value is None else f"{value:,.6g}") for name, value in self._figures.items())


class Trace:
    """A recorded trace: its contents, and a workload for runs. It is read on first use."""

    def __init__(self, text: str, volumes: Sequence[str], options: dict[str, Value | None]) -> None:
        self._plain = text
        self._volumes = list(volumes)
        self._options = dict(options)
        self._whole: _nvlab.Trace | None = None
        if volumes:
            options = {"volume": ",".join(volumes), **options}
        #: The workload that replays it.
        self.workload: Workload = workload(text, **options)

    @property
    def text(self) -> str:
        """The text after `-w`."""
        return self.workload.text

    def _read(self) -> _nvlab.Trace:
        if self._whole is None:
            self._whole = _nvlab.Trace(self._plain, self._volumes, None, None)
        return self._whole

    def __len__(self) -> int:
        """Requests."""
        return len(self._read())

    @property
    def volumes(self) -> list[str]:
        """The names of its volumes."""
        return self._read().volumes

    @property
    def about(self) -> str:
        """What was read and what was left out, in one line."""
        return self._read().report

    def info(self) -> TraceInfo:
        """Its statistics."""
        return TraceInfo(*self._read().info())

    def head(self, count: int = 10) -> Table:
        """The first requests: `time_ps`, `op`, `offset_bytes`, `length_bytes`, `volume`, `fua`. Only the beginning is read."""
        if self._whole is not None:
            return Table(self._whole.rows(0, count))
        part = _nvlab.Trace(self._plain, self._volumes, max(_HEAD_LINES, count), None)
        return Table(part.rows(0, count))

    def batches(self, rows: int = 1 << 20) -> Iterator[Table]:
        """All requests, in tables of so many rows."""
        whole = self._read()
        for start in range(0, len(whole), rows):
            yield Table(whole.rows(start, rows))

    def convert(self, to: str | os.PathLike[str]) -> dict[str, Any]:
        """Writes it to a new file `FILE[:FORMAT]`, as `nvlab trace convert` does; warns about what the format cannot express."""
        volumes = [f"--volumes={','.join(self._volumes)}"] if self._volumes else []
        with self._file() as file:
            return document_of(["trace", "convert", file, os.fspath(to), *volumes])

    def split(self, folder: str | os.PathLike[str], extension: str = "nvt") -> Path:
        """Writes each volume to a separate file in a folder."""
        with self._file() as file:
            cli(["trace", "split", file, folder, "--extension", extension])
        return Path(folder)

    @contextmanager
    def _file(self) -> Iterator[str]:
        """The file of the trace, for commands, which run in another process."""
        tables = tables_of([self._plain])
        if not tables:
            yield self._plain
            return
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "table.nvt"
            path.write_bytes(*tables.values())
            yield str(path)

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuilt, (self._plain, self._volumes, self._options, tables_of([self._plain])))

    def __repr__(self) -> str:
        return f"trace({self.text!r})"

    def _repr_html_(self) -> str:
        return self.info()._repr_html_()


def _rebuilt(text: str, volumes: list[str], options: dict[str, Value | None], tables: Tables) -> Trace:
    keep_tables(tables)
    return Trace(text, volumes, options)


def trace(
    path: str | os.PathLike[str] | ArrowStream,
    format: str | None = None,
    volumes: Sequence[str] = (),
    **options: Value | None,
) -> Trace:
    """A recorded trace: MSR Cambridge, SPC, blkparse, fio iologs, MQSim, Alibaba, Tencent, SYSTOR '17, FIU, CloudPhysics vscsi,
    Meta's CacheLib and Baleen, Parquet, nvt, or any text table (`columns="time_s,op,offset_bytes,length_bytes"`); plain, .gz, .zst
    (`explain("traces")`). The format is recognised by the file's first lines or its name, or given. Options are those of its replay, as for
    `workload`: `compact=True`, `align="4KiB"`, `qd=32`.

    Or a data frame of pandas, polars, pyarrow or DuckDB, with the columns of a trace in Parquet: `time_s` (or `_ms`, `_us`,
    `_ns`, `_ps`, or a timestamp `time`), `op`, `offset_bytes` (or `_sectors`), `length_bytes` (or `_sectors`), and optionally
    `volume`, `fua` and `response_s`. Its requests are kept in memory until the process ends.

    >>> import nvlab as nv
    >>> rows = nv.Table.of_columns({"time_us": [0, 90], "op": ["write", "read"], "offset_bytes": [0, 0], "length_bytes": [4096, 512]})
    >>> nv.trace(rows).info().write_bytes
    4096

    A text table by the names of its columns:

    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "my.csv"
    >>> _ = file.write_text("1 0 48 W\\n2 48 8 R\\n")
    >>> nv.trace(file, columns="time_us,offset_sectors,length_sectors,op").info().write_bytes
    24576
    """
    if isinstance(path, ArrowStream):
        if format is not None:
            raise InputError(f"format={format!r}: a data frame has none")
        return Trace(text_of_frame(path), volumes, options)
    text = os.fspath(path)
    # What says how the file is read belongs to it, whether it is replayed or looked at.
    reading: dict[str, Value | None] = {name: options.pop(name) for name in _READING & options.keys()}
    if isinstance(reading.get("header"), bool):
        reading["header"] = "yes" if reading["header"] else "no"
    plain = workload(f"{text}:{format}" if format else text, **dict(sorted(reading.items())))
    return Trace(plain.text, volumes, options)


def make_trace(
    source: str | Workload,
    to: str | os.PathLike[str],
    *,
    capacity: str = "16 GiB",
    requests: int = 1_000_000,
    seed: int = 1,
) -> dict[str, Any]:
    """Writes a generated workload as a trace, made for a device of some bytes."""
    words = ["trace", "make", str(source), os.fspath(to), "--capacity", capacity, "-n", str(requests)]
    return document_of([*words, "--seed", str(seed)])
