"""Results of runs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _nvlab
from ._html import escape, facts, preformatted
from ._table import Table

if TYPE_CHECKING:
    import matplotlib.axes

#: Kinds of requests.
KINDS = ("read", "write", "trim", "flush", "transaction")


class Latency(NamedTuple):
    """Latency of one kind of request, ns."""

    mean_ns: float
    p50_ns: int
    p95_ns: int
    p99_ns: int
    p99_9_ns: int
    p99_99_ns: int
    max_ns: int


class Metrics(Mapping[str, float]):
    """Every metric that a run has a value for, by name, in base units (ns, s, bytes, years, USD, shares of 1). Other spellings
    and short names are understood: `waf`, `write.p99.9`, `p99.write`, `tbw`."""

    def __init__(self, run: _nvlab.Run) -> None:
        self._run = run

    def __getitem__(self, name: str) -> float:
        value = self._run.metric(name)
        if value is None:
            raise KeyError(f"this run has no value for `{name}`")
        return value

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self._run.metrics())

    def __len__(self) -> int:
        return len(self._run.metrics())

    def shown(self, name: str) -> str:
        """A metric for people, with its unit and what must be known before it is used; `–` if the run has no value."""
        return self._run.shown(name) or "–"

    def within(self, name: str) -> float | None:
        """Half of the 95 % interval of a metric over its value, from the spread of parts of the run; infinite if the run is too
        short to say, `None` if the metric is no matter of chance."""
        return self._run.within(name)

    def __repr__(self) -> str:
        return f"<{len(self)} metrics>"


class Result:
    """What a run measured. It never changes; it can be pickled."""

    __slots__ = ("_run",)

    def __init__(self, run: _nvlab.Run) -> None:
        self._run = run

    @property
    def metrics(self) -> Metrics:
        """Every metric by name."""
        return Metrics(self._run)

    @property
    def write_amplification(self) -> float:
        """Bytes programmed for each byte the host wrote; 0 if it wrote nothing."""
        return self.metrics.get("waf", 0.0)

    def latency(self, kind: str) -> Latency:
        """Latency of `read`, `write`, `trim`, `flush` or `transaction`; a `KeyError` if none was served."""
        if kind not in KINDS:
            raise KeyError(f"`{kind}` is not a kind of request: {', '.join(KINDS)}")
        metrics = self.metrics
        whole = {name: int(metrics[f"{kind}.{name}"]) for name in ("p50", "p95", "p99", "p99_9", "p99_99", "max")}
        return Latency(metrics[f"{kind}.mean"], *whole.values())

    @property
    def iops(self) -> float:
        """Requests per simulated second, of all kinds."""
        return self.metrics.get("iops", 0.0)

    @property
    def lifetime_years(self) -> float | None:
        """Years until the flash is worn out at this rate; `None` if nothing wears it or it is not known."""
        return self.metrics.get("lifetime")

    @property
    def notes(self) -> list[str]:
        """What one must know before trusting a figure: that the cost of cleaning is not in the lifetime, that the run is too
        short."""
        return self._run.notes()

    @property
    def price(self) -> float | None:
        """What the media cost, USD."""
        return self.metrics.get("price")

    @property
    def design(self) -> str:
        """The design, with what was changed."""
        return self._run.design

    @property
    def workload(self) -> str:
        """The text of the workload."""
        return self._run.workload

    @property
    def prepared(self) -> str:
        """How the device was prepared, in one line: by whose writes, how many capacities, what it holds, and whether it is steady."""
        return self._run.prepared

    @property
    def seed(self) -> int:
        """The seed of the measured requests."""
        return self._run.seed

    @property
    def key(self) -> str:
        """Names design, workload, seed and preparation: the same key is the same result."""
        return self._run.key

    @property
    def folder(self) -> Path | None:
        """Where it is kept, if it is."""
        return self._run.dir

    @property
    def reused(self) -> bool:
        """It was kept before, and not run again."""
        return self._run.reused

    @property
    def wall_s(self) -> float:
        """What the run took on the machine that ran it, s."""
        return self._run.wall_s

    def to_dict(self) -> dict[str, Any]:
        """What `nvlab run --json` prints; `nvlab report --schema` describes it."""
        import json

        document: dict[str, Any] = json.loads(self._run.document())
        return document

    @property
    def series(self) -> Table:
        """The run over time: a row for each of up to 400 windows of equally many requests."""
        return Table(self._run.series(), about=f"{self.design} over time")

    @property
    def latency_histogram(self) -> Table:
        """The latency buckets: `op`, upper bound in ns, count."""
        return Table(self._run.histograms(), about=f"latency of {self.design}")

    @property
    def cycles(self) -> list[int]:
        """Erase count of each block, die by die; empty without flash, or for more than 65,536 blocks."""
        return self._run.cycles()

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Stores it below a folder, as the command line does (JSON and Parquet); returns its own folder. One that is there
        already stays as it is."""
        return self._run.save(Path(folder))

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Writes a self-contained HTML page; one that exists is replaced."""
        return write_report([self], path)

    def timeline(self, path: str | os.PathLike[str]) -> Path:
        """Writes the run over time for ui.perfetto.dev, as `nvlab run --timeline`; a file that exists is replaced."""
        path = Path(path)
        path.write_text(self._run.timeline(), encoding="utf-8")
        return path

    if TYPE_CHECKING:
        # What draws a result is above it and gives it these.
        def plot_latency(self, *kinds: str, ax: matplotlib.axes.Axes | None = None) -> matplotlib.axes.Axes: ...
        def plot_write_amplification(self, ax: matplotlib.axes.Axes | None = None) -> matplotlib.axes.Axes: ...
        def plot_wear(self, ax: matplotlib.axes.Axes | None = None) -> matplotlib.axes.Axes: ...

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Result) and self._run.parts()[0] == other._run.parts()[0]

    def __hash__(self) -> int:
        return hash(self.key)

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuilt, self._run.parts())

    def __repr__(self) -> str:
        return f"<Result of {self.design} under {self.workload}, seed {self.seed}>"

    def __str__(self) -> str:
        """The output of `nvlab run`."""
        return self._run.text(False, 100)

    def _repr_html_(self) -> str:
        shown = self.metrics.shown
        rows: list[tuple[str, object]] = [("workload", self.workload), ("requests per second", shown("iops"))]
        for kind in KINDS:
            if f"{kind}.p99" in self.metrics:
                figures = [f"{name} {shown(f'{kind}.{name}')}" for name in ("mean", "p50", "p99", "p99_9", "max")]
                rows.append((f"{kind} latency", ", ".join(figures).replace("p99_9", "p99.9")))
        rows += [
            ("write amplification", shown("waf")),
            ("lifetime", shown("lifetime")),
            ("price of media", shown("price")),
        ]
        return f"<h4>{escape(self.design)}</h4>{facts(rows)}" + preformatted("all", str(self))


def _rebuilt(text: str, wall_s: float, folder: Path | None, reused: bool) -> Result:
    return Result(_nvlab.Run.from_parts(text, wall_s, folder, reused))


def load(path: str | os.PathLike[str]) -> Result:
    """Loads a stored result: its folder, or the `result.json` in it."""
    return Result(_nvlab.Run.load(Path(path)))


def write_report(results: list[Result], path: str | os.PathLike[str], title: str = "nvlab") -> Path:
    """Writes results as one self-contained HTML page; one that exists is replaced."""
    path = Path(path)
    path.write_text(_nvlab.report_html([result._run for result in results], title), encoding="utf-8")
    return path
