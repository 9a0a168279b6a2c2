"""Data frames as traces.

A frame crosses once, as an Arrow IPC stream; its requests are then kept in this process under the name `table:HASH`, which is a
workload like any other. The hash is that of the requests, so that the name is the same in every process. What leaves the process
with such a name in it (a pickle, a point for a worker) takes the requests along.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable
from typing import Any, Protocol, runtime_checkable

from . import _nvlab
from ._errors import InputError, Unsupported

#: The requests of tables, by the hash in their names.
Tables = dict[str, bytes]


@runtime_checkable
class ArrowStream(Protocol):
    """A table that Arrow can read: of pandas, polars, pyarrow, DuckDB, or of nvlab."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...


def text_of_frame(frame: ArrowStream) -> str:
    """The workload that a data frame is: `table:HASH`."""
    return _nvlab.keep_table(ipc_of(frame))


def ipc_of(frame: ArrowStream) -> bytes:
    """A data frame as an Arrow IPC stream."""
    own = getattr(frame, "_frame", None)
    if isinstance(own, _nvlab.Frame):
        return own.to_ipc()
    if hasattr(frame, "collect_schema") and hasattr(frame, "collect"):
        raise InputError("a lazy frame has no rows yet: pass frame.collect()")
    sink = io.BytesIO()
    try:
        import pyarrow
    except ImportError:
        _polars().DataFrame(frame).write_ipc_stream(sink)
    else:
        reader: Any = pyarrow.RecordBatchReader.from_stream(frame)
        with pyarrow.ipc.new_stream(sink, reader.schema) as writer:
            for batch in reader:
                writer.write_batch(batch)
    return sink.getvalue()


def _polars() -> Any:
    try:
        import polars
    except ImportError:
        raise Unsupported("a data frame is read by pyarrow or polars, and neither is installed") from None
    return polars


def tables_of(texts: Iterable[str]) -> Tables:
    """The requests of the tables that these workloads name, for another process."""
    names = {name for text in texts for name in re.findall(r"\btable:([0-9a-f]{16})\b", text)}
    return {name: _nvlab.table_file(name) for name in sorted(names)}


def keep_tables(tables: Tables) -> None:
    """Stores tables of another process."""
    for file in tables.values():
        _nvlab.keep_table_file(file)
