"""Searches: the Pareto front of a space of designs, with fewer runs than its grid has points."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from . import _nvlab
from ._design import Design, design as read_design
from ._errors import DesignError, InputError, NvlabWarning, Unsupported
from ._run import AnyDesign, AnyWorkload, Options, State, simulate
from ._table import Cell, Metric, Table, metrics
from ._text import Value, text_of

if TYPE_CHECKING:
    from ._result import Result

#: A point: the number of its value on each axis.
_Point = tuple[int, ...]
#: A long run may be so much better than a short one of the same point, in what is measured.
_MARGIN = 0.1
#: Metrics that a design has without any run.
_OF_DESIGN = ("capacity", "price", "memory")


class Search(Table):
    """The runs of a search: a row for each point that was run, with the varied keys, the objectives, whether it is on the front,
    and whether it was given up after a short run. The rows of the front come first."""

    def __init__(self, frame: _nvlab.Frame, shown: Sequence[str], about: str, points: int) -> None:
        super().__init__(frame, shown, about)
        #: The points of the grid.
        self.points = points

    @property
    def front(self) -> Table:
        """The rows of the front."""
        count = sum(1 for value in self["front"] if value)
        return Table(self._frame.rows(0, count), self._shown, self.about)

    def _like(self, frame: _nvlab.Frame) -> Table:
        return Table(frame, self._shown, self.about)

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuilt, (self._frame.to_ipc(), self._shown, self.about, self.points))


def _rebuilt(ipc: bytes, shown: list[str], about: str, points: int) -> Search:
    return Search(_nvlab.Frame.from_ipc(ipc), shown, about, points)


def search(
    design: AnyDesign,
    space: Mapping[str, Sequence[Value]],
    workload: AnyWorkload,
    objectives: Sequence[str] = ("price", "lifetime", "write.p99"),
    *,
    runs: int = 40,
    at_once: int = 4,
    until: str | None = None,
    glance: str | None = None,
    seed: int = 1,
    precondition: State = "steady",
    **options: Unpack[Options],
) -> Search:
    """Searches for the designs on the Pareto front of the objectives (names of metrics, at least two), with at most `runs`
    of the points of `space`: the sampler, Optuna's, proposes `at_once` points that look good after those that are known. With
    the same seed it proposes the same points on every computer. It needs `pip install 'nvlab[search]'`.

    With `glance` (as `until`, but shorter) each point is run shortly first. One that stays behind a point of the front even if its
    figures were a tenth better is given up: after a long preparation, whose device is stored, a short run
    is informative enough.

    >>> import nvlab as nv
    >>> s = nv.search("bench-4g", {"ftl.spare": nv.arange("10 %", "50 %", "10 %"), "ftl.clean.kind": ["greedy", "fifo"]},
    ...               "uniform qd=8", ["capacity", "waf"], runs=8, until="1 x capacity", precondition="full", cache=False)
    >>> len(s) <= 8 < s.points, set(s.front["ftl.clean.kind"])
    (True, {'greedy'})
    """
    chosen = [_objective(name) for name in objectives]
    if len(chosen) < 2:
        raise InputError("a front has at least two objectives")
    if not space or any(not values for values in space.values()):
        raise InputError("a space has axes, each with values")
    study = _Study(space, chosen, seed)
    base = read_design(design)
    judge = _Judge(base, study, workload, precondition, seed, options)
    while len(study.known) < min(runs, study.size):
        batch = study.ask(min(at_once, runs - len(study.known)))
        if glance is not None:
            short = judge.run(batch, glance)
            for point in batch:
                study.poor[point] = study.is_behind(short[point])
            study.tell({point: short[point] for point in batch if study.poor[point]})
            batch = [point for point in batch if not study.poor[point]]
        study.tell(judge.run(batch, until))
    judge.warn()
    return study.result(base.name)


def _objective(name: str) -> Metric:
    found = metrics().get(name)
    if found is None:
        raise InputError(f"`{name}` is not a metric (nvlab explain metrics)")
    if found.better not in ("less", "more"):
        raise InputError(f"`{name}` is neither better when it is more nor when it is less")
    return found


#: What was measured of a point, in the order of the objectives; `None`: it has no result, or not all of them.
_Values = tuple[float, ...] | None


class _Study:
    """The known points of a space, and the sampler that proposes further ones."""

    def __init__(self, space: Mapping[str, Sequence[Value]], objectives: list[Metric], seed: int) -> None:
        try:
            import optuna
        except ImportError:
            raise Unsupported("a search needs Optuna: pip install 'nvlab[search]'") from None
        self.axes = {key: [text_of(value) for value in values] for key, values in space.items()}
        self.objectives = objectives
        self.size = 1
        for values in self.axes.values():
            self.size *= len(values)
        self.known: dict[_Point, _Values] = {}
        self.poor: dict[_Point, bool] = {}
        self._trials: dict[_Point, Any] = {}
        self._optuna = optuna
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        start = min(10, max(4, self.size // 5))
        sampler = optuna.samplers.TPESampler(seed=seed, multivariate=True, n_startup_trials=start)
        directions = ["minimize" if one.better == "less" else "maximize" for one in objectives]
        self._study = optuna.create_study(directions=directions, sampler=sampler)

    def ask(self, count: int) -> list[_Point]:
        """Points without a result yet."""
        asked: list[_Point] = []
        repeated = 0
        while len(asked) < min(count, self.size - len(self.known)):
            trial = self._study.ask()
            point = tuple(self._suggest(trial, key, values) for key, values in self.axes.items())
            if point not in self.known and point not in asked:
                asked.append(point)
                self._trials[point] = trial
                continue
            # It is told what it knows, so that it looks elsewhere; where it does not, the next point of the grid is taken.
            self._finish(trial, self.known.get(point))
            repeated += 1
            if repeated > 20:
                new = next(p for p in self._grid() if p not in self.known and p not in asked)
                asked.append(new)
                self._trials[new] = None
        return asked

    def _suggest(self, trial: Any, key: str, values: list[str]) -> int:
        if all(re.match(r"\s*[\d.]", value) for value in values):
            return int(trial.suggest_int(key, 0, len(values) - 1))
        return int(trial.suggest_categorical(key, list(range(len(values)))))

    def _grid(self) -> list[_Point]:
        from itertools import product

        return list(product(*(range(len(values)) for values in self.axes.values())))

    def _finish(self, trial: Any, values: _Values) -> None:
        if trial is None:
            return
        if values is None:
            self._study.tell(trial, state=self._optuna.trial.TrialState.FAIL)
        else:
            self._study.tell(trial, values)

    def tell(self, measured: Mapping[_Point, _Values]) -> None:
        for point, values in measured.items():
            self.known[point] = values
            self._finish(self._trials.pop(point), values)

    def is_behind(self, values: _Values) -> bool:
        """Whether a point with a full run beats these, even if their figures were better by the margin."""
        if values is None:
            return True
        slack = [0.0 if one.name.split(".")[0] in _OF_DESIGN else _MARGIN for one in self.objectives]
        better = [
            value * (1 - margin) if one.better == "less" else value * (1 + margin)
            for value, margin, one in zip(values, slack, self.objectives, strict=True)
        ]
        known = (of for point, of in self.known.items() if of is not None and not self.poor.get(point))
        return any(self._beats(other, better) for other in known)

    def _beats(self, one: Sequence[float], other: Sequence[float]) -> bool:
        """Whether it is nowhere worse, and somewhere better."""
        pairs = [
            (a, b) if of.better == "less" else (b, a) for a, b, of in zip(one, other, self.objectives, strict=True)
        ]
        return all(a <= b for a, b in pairs) and any(a < b for a, b in pairs)

    def result(self, name: str) -> Search:
        full = {p: v for p, v in self.known.items() if v is not None and not self.poor.get(p)}
        front = {p for p, v in full.items() if not any(self._beats(other, v) for other in full.values())}
        order = sorted(self.known, key=lambda point: (point not in front, self.poor.get(point, False), point))
        columns: dict[str, list[Cell]] = {}
        for axis, (key, values) in enumerate(self.axes.items()):
            columns[key] = [values[point[axis]] for point in order]
        for at, metric in enumerate(self.objectives):
            columns[metric.column] = [None if (of := self.known[p]) is None else of[at] for p in order]
        columns["front"] = [point in front for point in order]
        columns["given_up"] = [self.poor.get(point, False) for point in order]
        about = f"search of {name}: {len(self.known)} of {self.size} points, {len(front)} on the front"
        return Search(_nvlab.Frame.of_columns(list(columns.items())), list(columns), about, self.size)


class _Judge:
    """Runs points."""

    def __init__(
        self, base: Design, study: _Study, workload: AnyWorkload, precondition: State, seed: int, options: Options
    ) -> None:
        self._base, self._study, self._workload = base, study, workload
        self._precondition, self._seed, self._options = precondition, seed, options
        self._runs = 0
        #: Runs in whose lifetimes the cost of cleaning is not.
        self._short = 0

    def warn(self) -> None:
        """Warns how many lifetimes are unreliable, if designs were judged by them."""
        if self._short and any(one.is_life for one in self._study.objectives):
            warnings.warn(
                f"the lifetimes of {self._short} of {self._runs} runs do not include the cost of cleaning: these runs mostly "
                "filled blocks that were already erased (lifetime.regained below 90 %); run longer, or start with steady devices",
                NvlabWarning,
                stacklevel=3,
            )

    def run(self, points: Sequence[_Point], until: str | None) -> dict[_Point, _Values]:
        if not points:
            return {}
        designs: dict[_Point, Design] = {}
        values: dict[_Point, _Values] = dict.fromkeys(points)
        for point in points:
            sets = {key: texts[at] for at, (key, texts) in zip(point, self._study.axes.items(), strict=True)}
            try:
                designs[point] = self._base.with_(sets)
            except DesignError as wrong:
                warnings.warn(f"{', '.join(sets.values())}: {wrong}", NvlabWarning, stacklevel=4)
        if not designs:
            return values
        outcomes = simulate(
            list(designs.values()), self._workload, [self._seed], until, self._precondition, self._options
        )
        for point, outcome in zip(designs, outcomes, strict=True):
            if not isinstance(outcome, Exception):
                values[point] = self._values(outcome[0])
                self._runs += 1
                self._short += "caveat" in outcome[0].to_dict()["lifetime"]
        return values

    def _values(self, result: Result) -> _Values:
        found = [result.metrics.get(one.name) for one in self._study.objectives]
        return None if any(value is None for value in found) else tuple(float(value) for value in found if value is not None)
