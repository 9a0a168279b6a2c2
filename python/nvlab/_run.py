"""Runs and comparisons."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, TypeAlias, TypedDict, Unpack

from . import _nvlab
from ._design import Design, design as read_design
from ._errors import Error, NvlabWarning
from ._frame import ArrowStream
from ._html import grid
from ._progress import Progress, Reporter
from ._result import Result, write_report
from ._table import Metric, Table, metrics
from ._trace import Trace
from ._workload import Workload, workload as read_workload

#: What a design is given as: itself, a name, the path of a file, or a text.
AnyDesign: TypeAlias = "Design | str | os.PathLike[str]"
#: What a workload is given as: itself, the text after `-w`, the path of a trace or job, a trace, or a data frame.
AnyWorkload: TypeAlias = "Workload | str | os.PathLike[str] | Trace | ArrowStream"
#: `fresh`, `full`, `scattered`, `log-full` or `steady`, with options after commas.
State: TypeAlias = str


class Options(TypedDict, total=False):
    """Common to runs, comparisons, sweeps and reproductions."""

    #: Keep results below this folder, and do not run again what is kept there. Default: nothing is kept.
    out: str | os.PathLike[str] | None
    #: Run again what is kept.
    force: bool
    #: Runs at a time. Default: one for each core.
    jobs: int | None
    #: Where prepared devices are kept. Default: the folder of this user, as for the command line; `False`: nowhere.
    cache: str | os.PathLike[str] | Literal[False] | None
    #: What prepared devices take at most, bytes.
    cache_bytes: int
    #: Where progress is shown.
    progress: Progress


def settings(options: Options, include: Sequence[str | os.PathLike[str]] = ()) -> _nvlab.Settings:
    """Options as the engine takes them."""
    unknown = set(options) - set(Options.__annotations__)
    if unknown:
        raise TypeError(f"there is no option {', '.join(sorted(unknown))}")
    out, cache = options.get("out"), options.get("cache")
    folder = None
    if cache is None:
        own = os.environ.get("NVLAB_CACHE")
        folder = Path(own) if own else _nvlab.user_folder()
    elif cache is not False:
        folder = Path(cache)
    return _nvlab.Settings(
        None if out is None else Path(out),
        [Path(folder) for folder in include],
        options.get("jobs"),
        folder,
        options.get("cache_bytes", 4 << 30),
        options.get("force", False),
    )


def text_of_workload(source: AnyWorkload) -> str:
    """A workload as the engine takes it."""
    return source.text if isinstance(source, Trace) else read_workload(source).text


def simulate(
    designs: Sequence[Design],
    workload: AnyWorkload,
    seeds: Sequence[int],
    until: str | None,
    precondition: State,
    options: Options,
) -> list[list[Result] | Exception]:
    """Runs of each design, or the reason that it has none."""
    inner = [one._inner for one in designs]
    text = text_of_workload(workload)
    with Reporter(options.get("progress")) as reporter:
        outcomes, notes = _nvlab.simulate(
            inner, text, list(seeds), until, precondition, settings(options), reporter.report
        )
    for one in designs:
        notes = [*notes, *(f"{one.name}: {what}" for what in one.warnings)]
    for note in dict.fromkeys(notes):
        warnings.warn(note, NvlabWarning, stacklevel=3)
    return [one if isinstance(one, Exception) else [Result(run) for run in one] for one in outcomes]


def run(
    design: AnyDesign,
    workload: AnyWorkload,
    *,
    until: str | None = None,
    seed: int = 1,
    precondition: State = "steady",
    **options: Unpack[Options],
) -> Result:
    """Simulates a design under a workload.

    `until` ends it: simulated time (`"60 s"`), requests (`"1e6 io"`), data (`"2 TiB"`) or data written (`"3 x capacity"`), or
    until a figure reaches a precision (`"2%"`: write amplification; `"write.p99 within 5%"`); by default the workload's own end, or
    one capacity. `precondition` brings the device to a state first (`explain
    ("steady-state")`). Other Python threads continue, and Ctrl-C ends it.

    >>> import nvlab as nv
    >>> r = nv.run("bench-4g", "uniform bs=4KiB qd=8", until="20000 io", precondition="full", cache=False)
    >>> r.write_amplification >= 1, r.latency("write").p99_ns > 0
    (True, True)
    """
    (outcome,) = simulate([read_design(design)], workload, [seed], until, precondition, options)
    if isinstance(outcome, Exception):
        raise outcome
    return outcome[0]


class Comparison:
    """Designs under the same workload. The first is the baseline."""

    def __init__(self, groups: list[list[Result]], left_out: dict[str, Exception]) -> None:
        self._groups = groups
        #: The designs that have no result, and why.
        self.left_out = left_out

    @property
    def results(self) -> list[Result]:
        """Every run: each design's, in the order of their seeds."""
        return [result for group in self._groups for result in group]

    def __iter__(self) -> Iterator[Result]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, design: str | int) -> Result:
        """The first run of a design, by its name or number."""
        if isinstance(design, int):
            return self._groups[design][0]
        for group in self._groups:
            if group[0].design == design:
                return group[0]
        raise KeyError(f"`{design}` is not among {', '.join(group[0].design for group in self._groups)}")

    @property
    def table(self) -> Table:
        """A row for each run: design, seed, and every metric that some run has."""
        columns: dict[str, list[str | int | float | bool | None]] = {
            "design": [result.design for result in self.results],
            "seed": [result.seed for result in self.results],
        }
        values = [dict(result.metrics) for result in self.results]
        for metric in metrics().values():
            of_runs: list[str | int | float | bool | None] = [of.get(metric.name) for of in values]
            if any(value is not None for value in of_runs):
                columns[metric.column] = of_runs
        shown = [m for m in map(metrics().get, _SHOWN) if m is not None and m.column in columns]
        names = ["design", *(["seed"] if self._seeds > 1 else []), *(metric.column for metric in shown)]
        return Table(_nvlab.Frame.of_columns(list(columns.items())), names)

    @property
    def _seeds(self) -> int:
        return max(len(group) for group in self._groups)

    def text(self, metrics: Sequence[str] = (), format: Literal["human", "md", "csv", "json"] = "human") -> str:
        """The output of `nvlab compare`."""
        groups = [[result._run for result in group] for group in self._groups]
        return _nvlab.compare_runs(groups, list(metrics), format)

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Writes a self-contained HTML page; one that exists is replaced."""
        return write_report(self.results, path)

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"<Comparison of {', '.join(group[0].design for group in self._groups)}>"

    def _repr_html_(self) -> str:
        rows: list[list[str]] = []
        for metric in map(metrics().get, _SHOWN):
            if isinstance(metric, Metric) and any(metric.name in group[0].metrics for group in self._groups):
                rows.append([metric.title, *(group[0].metrics.shown(metric.name) for group in self._groups)])
        heads = ["", *(group[0].design for group in self._groups)]
        note = "; ".join(f"{name} is left out: {why}" for name, why in self.left_out.items())
        return grid(heads, rows, note)


_SHOWN = ("iops", "throughput", "write.mean", "write.p99", "read.mean", "read.p99", "waf", "lifetime", "price")


def compare(
    designs: Sequence[AnyDesign],
    workload: AnyWorkload,
    *,
    until: str | None = None,
    seed: int = 1,
    repeat: int = 1,
    precondition: State = "steady",
    **options: Unpack[Options],
) -> Comparison:
    """Simulates designs under the same workload, side by side, each with `repeat` seeds. A design that cannot run it is left
    out; if none can, the reason of the first is raised."""
    read = [read_design(one) for one in designs]
    seeds = range(seed, seed + repeat)
    outcomes = simulate(read, workload, seeds, until, precondition, options)
    left_out = {of.name: why for of, why in zip(read, outcomes, strict=True) if isinstance(why, Exception)}
    groups = [group for group in outcomes if not isinstance(group, Exception)]
    if not groups:
        raise next(iter(left_out.values()), Error("there is nothing to compare"))
    return Comparison(groups, left_out)
