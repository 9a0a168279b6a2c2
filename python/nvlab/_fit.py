"""Searches for designs: from what is said of a drive to its design, from requirements to the best design."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Unpack

from . import _nvlab
from ._design import Design, design as read_design
from ._progress import Report, Reporter
from ._run import AnyDesign, AnyWorkload, Options, State, settings, text_of_workload
from ._table import Cell, Table
from ._text import Value, text_of


class Fit:
    """The most probable design of a drive, and what the figures leave open."""

    def __init__(self, found: dict[str, Any], notes: Sequence[str], page: str) -> None:
        #: The design.
        self.design: Design = read_design(found["design"])
        #: A row for each figure, in base units: stated, simulated, how far it is off (a share) and whether it may be, between what
        #: nine of ten drives that fit are; of what fio measured also mean and 99th percentile of the latency.
        self.figures = Table.of_columns(_figures(found["residuals"]))
        #: A row for each number of the design: its most probable value, where nine of ten drives that fit have it, what is
        #: usual, and whether no figure depends on it.
        self.numbers = Table.of_columns(_numbers(found["numbers"]))
        #: What to measure next: figures on which drives that fit differ most, between what they do, and the number that each narrows.
        self.next: list[tuple[str, tuple[float, float], str]] = [
            (one["figure"], (one["interval"][0], one["interval"][1]), one["number"]) for one in found["next"]
        ]
        #: Jobs of fio that no closed form is of, run with the design and not fitted: reads and writes of each, requests a second, mean
        #: and 99th percentile in seconds, measured and simulated.
        self.compared = Table.of_columns(_compared(found["compared"]))
        #: Figures that contradict physics, each other, or all others.
        self.doubts: list[str] = found["doubts"]
        #: What was assumed of measurements, and which of them are not compared.
        self.notes = [*notes, *found["notes"]]
        #: Other designs that explain the figures as well, with what differs of them.
        self.others: list[tuple[str, Design]] = [
            (other["differs"], read_design(other["design"])) for other in found["others"]
        ]
        self._text: str = found["design"]
        self._page = page

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the design with its intervals as comments; a file that exists is replaced."""
        path = Path(path)
        path.write_text(self._text, encoding="utf-8")
        return path

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Writes figures, numbers and what to measure next as a self-contained HTML page; one that exists is replaced."""
        path = Path(path)
        path.write_text(self._page, encoding="utf-8")
        return path

    def __str__(self) -> str:
        return "\n".join([str(self.figures), str(self.numbers), *self.doubts, *self.notes])

    def __repr__(self) -> str:
        within = sum(1 for one in self.figures["within"] if one)
        return f"<Fit: {self.design.name}, {within} of {len(self.figures)} figures within what they may be off>"

    def _repr_html_(self) -> str:
        return self.figures._repr_html_() + self.numbers._repr_html_()


def _figures(rows: list[dict[str, Any]]) -> dict[str, list[Cell]]:
    columns: dict[str, list[Cell]] = {
        name: [row[name] for row in rows]
        for name in ("figure", "stated", "simulated", "difference", "within", "tolerance", "source", "line")
    }
    columns["low"], columns["high"] = ([row["interval"][end] for row in rows] for end in (0, 1))
    measured = [row["latencies"] for row in rows]
    if any(measured):
        for at, name in enumerate(("mean_s", "p99_s")):
            for kind, suffix in (("measured", ""), ("simulated", "_simulated")):
                columns[name + suffix] = [of[kind][at] if of else None for of in measured]
    return columns


def _compared(jobs: list[dict[str, Any]]) -> dict[str, list[Cell]]:
    rows = [(job, kind) for job in jobs for kind in ("read", "write") if job["measured"][kind]["per_s"]]
    columns: dict[str, list[Cell]] = {"job": [job["job"] for job, _ in rows], "kind": [kind for _, kind in rows]}
    for which, suffix in (("measured", ""), ("simulated", "_simulated")):
        sides = [job[which][kind] for job, kind in rows]
        columns["per_s" + suffix] = [side["per_s"] for side in sides]
        for at, name in enumerate(("mean_s", "p99_s")):
            columns[name + suffix] = [side["latencies"] and side["latencies"][at] for side in sides]
    return columns


def _numbers(rows: list[dict[str, Any]]) -> dict[str, list[Cell]]:
    columns: dict[str, list[Cell]] = {
        name: [row[name] for row in rows] for name in ("name", "key", "value", "prior_only", "source")
    }
    for name, ends in (("interval", ("low", "high")), ("usual", ("usual_low", "usual_high"))):
        for at, end in enumerate(ends):
            columns[end] = [row[name][at] for row in rows]
    return columns


def fit(
    figures: str | os.PathLike[str],
    measured: Sequence[str | os.PathLike[str]] = (),
    *,
    state: str | None = None,
    capacity: str | None = None,
    seed: int = 1,
    on: Any = "local",
    **options: Unpack[Options],
) -> Fit:
    """The design that most probably does what a file of figures says of a drive (`explain("fit")`), and what fio measured besides:
    `measured` are files of its JSON, `state` in which the drive was written to (`fresh`, `cache`, `after cache`, `full`, `steady`).
    `capacity` picks one of several siblings; `on` says where designs are simulated, as for `sweep`."""
    with Reporter(options.get("progress")) as reporter, _runs_on(on, options, reporter.report) as (inner, elsewhere):
        files = [Path(file) for file in measured]
        found, page, notes = _nvlab.fit_figures(
            Path(figures), files, state, capacity, seed, inner, elsewhere, reporter.report
        )
    return Fit(json.loads(found), notes, page)


@contextmanager
def _runs_on(
    on: Any, options: Options, report: Report | None
) -> Iterator[tuple[_nvlab.Settings, Callable[[str], dict[int, str]] | None]]:
    """Where a search runs: its settings, and what runs its designs on a cluster."""
    if on == "local":
        yield settings(options), None
        return
    from ._dask import cluster

    with cluster(on, options, report) as (kept, elsewhere):
        yield settings(kept), elsewhere


class Choice:
    """The best design, or the front of several goals; what binds it and what its needs cost."""

    def __init__(self, design: Design, found: dict[str, Any], page: str) -> None:
        #: The best; of several goals, all of which none is better in each, the best of the first goal first. Empty if no
        #: design that was run meets all needs.
        self.best: list[Design] = [design.with_(_sets(one["set"])) for one in found["best"]]
        #: A row for each design that was run: the free keys that it has, the goals, what each need is about, whether it meets
        #: all, whether it is among the best.
        self.table = Table.of_columns(_candidates(found))
        #: Needs that the best just meets, and keys at an end of their range.
        self.binds: list[str] = found["binds"]
        #: What each need costs: the first goal as it could be without it; `None` if nothing better was found.
        self.costs: dict[str, float | None] = {
            cost["need"]: cost["without"]["goals"][0] if cost["without"] else None for cost in found["costs"]
        }
        #: Designs in the space, as far as keys and values tell.
        self.designs: int = found["designs"]
        #: Runs that were made.
        self.runs: int = found["runs"]
        self._page = page

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Writes the front as a picture and all that was run as a self-contained HTML page; one that exists is replaced."""
        path = Path(path)
        path.write_text(self._page, encoding="utf-8")
        return path

    def __repr__(self) -> str:
        best = self.best[0].name if self.best else "none meets all needs"
        return f"<Choice: {best}; {self.runs} runs of {self.designs} designs>"

    def _repr_html_(self) -> str:
        return self.table._repr_html_()


def _sets(sets: list[str]) -> dict[str, str]:
    return dict(one.split("=", 1) for one in sets)


def _candidates(found: dict[str, Any]) -> dict[str, list[Cell]]:
    rows: list[dict[str, Any]] = found["candidates"]
    keys = list(dict.fromkeys(key for row in rows for key in _sets(row["set"])))
    columns: dict[str, list[Cell]] = {key: [_sets(row["set"]).get(key) for row in rows] for key in keys}
    for kind, names in (("goals", found["goals"]), ("needs", found["need_metrics"])):
        for at, name in enumerate(names):
            columns.setdefault(name, [row[kind][at] for row in rows])
    columns["meets"] = [all(row["meets"]) for row in rows]
    columns["best"] = [row["front"] for row in rows]
    return columns


def choose(
    design: AnyDesign,
    free: Mapping[str, str | Sequence[Value]],
    workload: AnyWorkload,
    best: str | Sequence[str],
    needs: Sequence[str] = (),
    *,
    runs: int = 100,
    until: str | None = None,
    seed: int = 1,
    precondition: State = "steady",
    on: Any = "local",
    **options: Unpack[Options],
) -> Choice:
    """The best design that meets needs (`"write.p99 <= 2ms"`), with at most so many runs. `free` are keys that may be changed, each
    with a range (`"5%..40%"`, `"1..64*2"`), `"*"` for all names, or values. Of several goals in `best`, the front. `on` says where designs
    run, as for `sweep`; the answer is the same.

    >>> import nvlab as nv
    >>> c = nv.choose("bench-4g", {"ftl.spare": "10%..40%:10%"}, "uniform qd=8", "capacity", ["waf <= 2.5"],
    ...               until="1 x capacity", precondition="full", cache=False)
    >>> c.best[0].name, c.designs
    ('bench-4g ftl.spare=20 %', 4)
    """
    base = read_design(design)
    of = [f"{key}={value if isinstance(value, str) else ','.join(map(text_of, value))}" for key, value in free.items()]
    with Reporter(options.get("progress")) as reporter, _runs_on(on, options, reporter.report) as (inner, elsewhere):
        found, page = _nvlab.choose_design(
            base._inner,
            of,
            text_of_workload(workload),
            list(needs),
            [best] if isinstance(best, str) else list(best),
            runs,
            seed,
            until,
            precondition,
            inner,
            elsewhere,
            reporter.report,
        )
    return Choice(base, json.loads(found), page)
