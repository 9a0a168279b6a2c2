"""Sweeps."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, Unpack

from . import _nvlab
from ._design import Design, design as read_design
from ._errors import InputError
from ._frame import ArrowStream
from ._progress import Reporter
from ._run import AnyDesign, AnyWorkload, Options, State, settings, text_of_workload
from ._table import Table
from ._text import text_of
from ._trace import Trace
from ._workload import Workload

#: What is varied: a key and its values, or several keys that move together, each time with as many values.
Axes: TypeAlias = Mapping[str | tuple[str, ...], Sequence[Any]]

#: Where points run: `"local"`, `"dask"`, `"dask:tcp://HOST:PORT"`, or a client of Dask.distributed.
On: TypeAlias = Any

#: Shown of a sweep, besides what was varied.
_SHOWN = ("iops", "write.mean_ns", "write.p99_ns", "read.p99_ns", "waf", "lifetime_years", "price_usd")


class SweepTable(Table):
    """The results of a sweep: a row for each point, with the varied keys, the metrics that some point has, the key of the run, and an
    error where there is no result. Files have every metric, whatever the results: their columns are always the same."""

    def __init__(self, frame: _nvlab.Frame, shown: Sequence[str], about: str, failed: int) -> None:
        super().__init__(frame, shown, about)
        #: Points without a result; column `error` says why.
        self.failed = failed
        self._present = frame.with_values()

    def report(
        self, path: str | os.PathLike[str], *, metrics: Sequence[str] = (), front: Sequence[str] = ()
    ) -> Path:
        """Writes table, curves and Pareto front as a self-contained HTML page; one that exists is replaced. `metrics` are those
        of its table and curves, `front` the two or three that points are compared by; by default those of the sweep."""
        path = Path(path)
        path.write_text(_nvlab.sweep_page(self._frame, list(metrics), list(front)), encoding="utf-8")
        return path

    @property
    def _whole(self) -> _nvlab.Frame:
        return self._present

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuilt, (self._frame.to_ipc(), self._shown, self.about, self.failed))


def _rebuilt(ipc: bytes, shown: list[str], about: str, failed: int) -> SweepTable:
    return SweepTable(_nvlab.Frame.from_ipc(ipc), shown, about, failed)


def sweep(
    design: AnyDesign | Sequence[AnyDesign],
    axes: Axes | None = None,
    workload: AnyWorkload | Sequence[AnyWorkload] | None = None,
    *,
    until: str | None = None,
    seed: int = 1,
    repeat: int = 1,
    precondition: State = "steady",
    on: On = "local",
    shard: str | None = None,
    include: Sequence[str | os.PathLike[str]] = (),
    **options: Unpack[Options],
) -> SweepTable:
    """Simulates every point of a parameter space, on all cores; several designs, several workloads and `repeat` seeds are axes,
    too. Keys that move together are one axis: `{("media.nand.dies", "ftl.buffer.size"): [(4, "1 MiB"), (8, "2 MiB")]}`. Alone, the
    path of a sweep's file (`explain("sweeps")`).

    With `out`, a sweep that was interrupted or killed continues where it stopped. `shard="1/4"` runs every fourth point; `include`
    takes results stored elsewhere. A point that cannot be run is a row with its error.

    `on="dask"` runs the points in a process for each core, `on="dask:tcp://HOST:PORT"` or a client of Dask.distributed on its
    cluster; the table is the same, byte by byte. A script that is not a notebook needs `if __name__ == "__main__":` for the former.

    >>> import nvlab as nv
    >>> t = nv.sweep("bench-4g", {"ftl.spare": ["10 %", "20 %"]}, "uniform qd=8", until="20000 io",
    ...              precondition="full", cache=False)
    >>> t["ftl.spare"]
    [0.1, 0.2]
    """
    if axes is None and workload is None:
        if not isinstance(design, (str, os.PathLike)):
            raise InputError("a sweep of a design needs axes and a workload")
        space = _nvlab.Space.of_file(Path(design))
    else:
        if workload is None:
            raise InputError("a sweep of a design needs a workload")
        space = _space(design, axes or {}, workload, until, range(seed, seed + repeat), precondition)
    with Reporter(options.get("progress")) as reporter:
        if on == "local":
            frame, failed, notes = space.run(settings(options, include), shard, {}, reporter.report)
        else:
            if shard is not None:
                raise InputError("shards are for machines without a cluster: shard and on exclude each other")
            frame, failed, notes = _elsewhere(space, on, options, include, reporter)
    return _table(frame, [column for _, column in space.keys], space.name, failed, notes)


def _table(frame: _nvlab.Frame, varied: list[str], name: str, failed: int, notes: list[str]) -> SweepTable:
    known = [name for name in _SHOWN if name in frame.names]
    shown = varied + [name for name in known if any(value is not None for value in frame.column(name))]
    shown += ["error"] if failed else []
    about = f"sweep of {name}" + (f", {failed} points without a result" if failed else "")
    return SweepTable(frame, shown, "; ".join([about, *notes]), failed)


def load_sweep(path: str | os.PathLike[str]) -> SweepTable:
    """A finished sweep: the table that `nvlab sweep` or `SweepTable.save` wrote (`.parquet`), or the folder with one. Nothing is run.

    >>> import nvlab as nv, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> t = nv.sweep("bench-4g", {"ftl.spare": ["10 %", "20 %"]}, "uniform qd=8", until="20000 io", precondition="full")
    >>> file = t.save(f"{folder}/sweep-spare.parquet")
    >>> again = nv.load_sweep(folder)
    >>> again["ftl.spare"], again.report(f"{folder}/page.html").exists()
    ([0.1, 0.2], True)
    """
    return _table(*_nvlab.load_sweep(Path(path)))


def _elsewhere(
    space: _nvlab.Space,
    on: Any,
    options: Options,
    include: Sequence[str | os.PathLike[str]],
    reporter: Reporter,
) -> tuple[_nvlab.Frame, int, list[str]]:
    """Runs the missing points on a cluster, then makes the table from the stored results."""
    import tempfile

    from ._dask import run_on

    with tempfile.TemporaryDirectory() as folder:
        # Results come back one by one and are kept at once, if only until the table is made.
        kept: Options = {**options, "out": options.get("out") or folder}
        errands = space.errands(settings(kept, include))
        failed = run_on(on, errands, kept, reporter.report)
        return space.run(settings(kept, include), None, failed, reporter.report)


def _space(
    design: AnyDesign | Sequence[AnyDesign],
    axes: Axes,
    workload: AnyWorkload | Sequence[AnyWorkload],
    until: str | None,
    seeds: range,
    precondition: State,
) -> _nvlab.Space:
    designs = [design] if isinstance(design, (Design, str, os.PathLike)) else list(design)
    workloads = [workload] if isinstance(workload, (Workload, Trace, ArrowStream, str, os.PathLike)) else list(workload)
    texts = [text_of_workload(one) for one in workloads]
    named = [_axis(keys, values) for keys, values in axes.items()]
    if len(texts) > 1:
        named.insert(0, _axis("workload", texts))
    if len(seeds) > 1:
        named.append(_axis("seed", seeds))
    inner = [read_design(one)._inner for one in designs]
    return _nvlab.Space.of_axes(inner, texts[0], named, seeds[0], until, precondition)


def _axis(keys: str | tuple[str, ...], values: Sequence[Any]) -> tuple[list[str], list[list[str]]]:
    """Keys, and in each row a value of every key."""
    if isinstance(keys, str):
        return [keys], [[text_of(value)] for value in values]
    for row in values:
        if isinstance(row, str) or not isinstance(row, Sequence):
            raise InputError(f"{', '.join(keys)}: {row!r} is not a value of each of the {len(keys)} keys, as a tuple")
    return list(keys), [[text_of(value) for value in row] for row in values]
