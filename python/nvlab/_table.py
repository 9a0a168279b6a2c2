"""Tables: columns in memory that pyarrow, polars, pandas and DuckDB read without a copy, through the Arrow C stream interface.
None of them is required."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, overload

from . import _nvlab
from ._html import grid
from ._errors import InputError

if TYPE_CHECKING:
    import duckdb
    import matplotlib.axes
    import pandas
    import polars
    import pyarrow

#: A cell of a table.
Cell: TypeAlias = "str | int | float | bool | None"

#: Rows that are printed.
_ROWS_SHOWN = 20


class Table:
    """A table. It never changes."""

    def __init__(self, frame: _nvlab.Frame, shown: Sequence[str] | None = None, about: str = "") -> None:
        self._frame = frame
        self._shown = list(shown) if shown is not None else frame.names
        #: What it is, in one line.
        self.about = about

    @classmethod
    def of_columns(cls, columns: Mapping[str, Sequence[Cell]]) -> Table:
        """A table of columns of texts, whole numbers, numbers or flags; `None` is missing."""
        return Table(_nvlab.Frame.of_columns(list(columns.items())))

    @property
    def columns(self) -> list[str]:
        """The names of the columns, with the units of numbers: `write.p99_ns`."""
        return self._whole.names

    def __len__(self) -> int:
        return len(self._frame)

    @overload
    def __getitem__(self, what: str) -> list[Cell]: ...
    @overload
    def __getitem__(self, what: int) -> dict[str, Cell]: ...
    @overload
    def __getitem__(self, what: slice) -> Table: ...
    def __getitem__(self, what: str | int | slice) -> list[Cell] | dict[str, Cell] | Table:
        """The values of a column, in base units (`t["waf"]`; a metric may be named without its unit), a row (`t[0]`, `t[-1]`), or a
        table of some rows (`t[:3]`, `t[::2]`).

        >>> import nvlab as nv
        >>> t = nv.Table.of_columns({"design": ["a", "b", "c"], "waf": [1.0, 2.0, 4.0]})
        >>> t["waf"], t[-1], t[:2]["design"], len(t[::2])
        ([1.0, 2.0, 4.0], {'design': 'c', 'waf': 4.0}, ['a', 'b'], 2)
        """
        if isinstance(what, slice):
            start, stop, step = what.indices(len(self))
            places = range(start, stop, step)
            return self._like(self._rows(start, len(places)) if step == 1 else self._whole.take(list(places)))
        if isinstance(what, str):
            try:
                return self._frame.column(self.column_of(what))
            except InputError as error:
                raise KeyError(str(error)) from None
        try:
            at = range(len(self))[what]
        except IndexError:
            raise IndexError(f"row {what} of a table of {len(self)} rows") from None
        return next(iter(self._like(self._rows(at, 1))))

    def __iter__(self) -> Iterator[dict[str, Cell]]:
        """Its rows."""
        names = self.columns
        for row in zip(*(self._whole.column(name) for name in names), strict=True):
            yield dict(zip(names, row, strict=True))

    def head(self, count: int = 10) -> Table:
        """The first rows."""
        return self._like(self._rows(0, count))

    @property
    def _whole(self) -> _nvlab.Frame:
        """The interface for other packages: every column."""
        return self._frame

    def _rows(self, start: int, count: int) -> _nvlab.Frame:
        return self._whole.rows(start, count)

    def _like(self, frame: _nvlab.Frame) -> Table:
        return Table(frame, [name for name in self._shown if name in frame.names], self.about)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._whole.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self._whole.__arrow_c_schema__()

    def arrow(self) -> pyarrow.Table:
        """As a table of pyarrow."""
        import pyarrow

        return pyarrow.table(self)

    def polars(self) -> polars.DataFrame:
        """As a data frame of polars."""
        import polars

        return polars.DataFrame(self)

    def pandas(self) -> pandas.DataFrame:
        """As a data frame of pandas (3.0 or later reads it itself, earlier ones by pyarrow)."""
        import pandas

        if hasattr(pandas.DataFrame, "from_arrow"):
            frame: pandas.DataFrame = pandas.DataFrame.from_arrow(self)
            return frame
        return self.arrow().to_pandas()

    def duckdb(self, connection: duckdb.DuckDBPyConnection | None = None) -> duckdb.DuckDBPyRelation:
        """As a relation of DuckDB, on a connection or on its default one."""
        import duckdb

        return (connection or duckdb.default_connection()).from_arrow(self)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes a Parquet file; one that exists is replaced. The same table is the same bytes."""
        path = Path(path)
        self._frame.save(path)
        return path

    if TYPE_CHECKING:
        # What draws a table is above it and gives it these.
        def plot(
            self, x: str, y: str, by: str | None = None, *, ax: matplotlib.axes.Axes | None = None, **options: Any
        ) -> matplotlib.axes.Axes: ...
        def plot_pareto(
            self, x: str, y: str, by: str | None = None, *, ax: matplotlib.axes.Axes | None = None
        ) -> matplotlib.axes.Axes: ...

    def pareto(self, *metrics: str) -> list[int]:
        """The numbers of the rows that no other row beats in all of these metrics: is as good in each and better in one.
        The direction, less or more, is a property of every metric."""
        signs = []
        for name in metrics:
            better = metric_of(name).better
            if not better:
                raise InputError(f"`{name}`: neither less nor more of it is better")
            signs.append(1.0 if better == "less" else -1.0)
        columns = [self[self.column_of(name)] for name in metrics]
        points: dict[int, tuple[float, ...]] = {}
        for at, row in enumerate(zip(*columns, strict=True)):
            if all(isinstance(value, (int, float)) for value in row):
                points[at] = tuple(sign * float(value) for sign, value in zip(signs, row, strict=True))

        def beaten(mine: tuple[float, ...]) -> bool:
            others = points.values()
            return any(all(a <= b for a, b in zip(one, mine, strict=True)) and one != mine for one in others)

        return [at for at, mine in points.items() if not beaten(mine)]

    def column_of(self, name: str) -> str:
        """The column of a name: the name itself, or that of a metric without its unit."""
        names = self._frame.names
        if name in names:
            return name
        found = _metrics().get(name)
        if found is not None and found.column in names:
            return found.column
        ending = [column for column in names if column.endswith("." + name) or column.startswith(name + "_")]
        if len(ending) == 1:
            return ending[0]
        raise InputError(f"there is no column `{name}`; there are such as {', '.join(names[:8])}")

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuilt, (self._frame.to_ipc(), self._shown, self.about))

    def __repr__(self) -> str:
        return f"<Table of {len(self)} rows and {len(self.columns)} columns>"

    def _heads(self) -> list[str]:
        """The columns that are shown: metrics without their unit, which the cells have."""
        found = [_metrics().get(column) for column in self._shown]
        return [column if metric is None else metric.name for column, metric in zip(self._shown, found, strict=True)]

    def _cells(self) -> list[list[str]]:
        first = self._frame.rows(0, _ROWS_SHOWN)
        columns = [[_shown(column, value) for value in first.column(column)] for column in self._shown]
        return [list(row) for row in zip(*columns, strict=True)]

    def _note(self) -> str:
        parts = [self.about] if self.about else []
        if len(self) > _ROWS_SHOWN:
            parts.append(f"{_ROWS_SHOWN} of {len(self)} rows")
        if len(self._shown) < len(self.columns):
            parts.append(f"{len(self._shown)} of {len(self.columns)} columns")
        return "; ".join(parts)

    def __str__(self) -> str:
        rows = [self._heads(), *self._cells()]
        widths = [max(len(row[at]) for row in rows) for at in range(len(self._shown))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        note = self._note()
        return "\n".join([*lines, *([f"({note})"] if note else [])])

    def _repr_html_(self) -> str:
        return grid(self._heads(), self._cells(), self._note())


def _rebuilt(ipc: bytes, shown: list[str], about: str) -> Table:
    return Table(_nvlab.Frame.from_ipc(ipc), shown, about)


def _shown(column: str, value: Cell) -> str:
    """A cell for display: a metric with its unit."""
    if value is None:
        return "–"
    if isinstance(value, (int, float)) and column in _metrics():
        return _nvlab.display_metric(column, value)
    return f"{value:.4g}" if isinstance(value, float) else str(value)


class Metric:
    """A metric: its name, its unit, and which direction is better."""

    __slots__ = ("name", "column", "title", "unit", "better", "about", "is_life")

    def __init__(self, row: tuple[str, str, str, str, str, str, bool]) -> None:
        #: `write.p99`.
        self.name = row[0]
        #: The name of its column in tables, with the unit: `write.p99_ns`.
        self.column = row[1]
        #: `write p99`.
        self.title = row[2]
        #: `ns`, `s`, `B`, `B/s`, `1/s`, `years`, `USD`, `USD/GiB`; empty for counts, ratios and shares.
        self.unit = row[3]
        #: `less`, `more` or empty.
        self.better = row[4]
        #: One line.
        self.about = row[5]
        #: It says how long the flash lasts.
        self.is_life = row[6]

    def __repr__(self) -> str:
        return f"<Metric {self.name}: {self.about}>"


_METRICS: dict[str, Metric] = {}


def _metrics() -> dict[str, Metric]:
    """Every metric, by its name and by its column."""
    if not _METRICS:
        for row in _nvlab.metric_table():
            metric = Metric(row)
            _METRICS[metric.column] = metric
            _METRICS[metric.name] = metric
    return _METRICS


def metrics() -> dict[str, Metric]:
    """Every metric by its name, as used in results, tables and assertions."""
    return {metric.name: metric for metric in _metrics().values()}


def metric_of(name: str) -> Metric:
    """The metric of a name or a column."""
    found = _metrics().get(name)
    if found is None:
        raise InputError(f"there is no metric `{name}` (nvlab.metrics() has all)")
    return found
