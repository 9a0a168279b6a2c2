"""Plots of results and tables, which know nothing of them: `give` makes these functions methods of theirs.

With matplotlib: an optional dependency, imported when something is plotted."""

from __future__ import annotations

import textwrap
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from . import _nvlab
from ._errors import InputError, Unsupported
from ._result import Result
from ._table import Cell, Table, metric_of, metrics

if TYPE_CHECKING:
    import matplotlib.axes

#: Colours that colour-blind readers tell apart (Okabe and Ito), and line styles that do without colour.
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_STYLES = ("-", "--", "-.", ":")

#: Where the axis of a latency distribution has ticks.
_NINES = ((0.5, "50 %"), (0.9, "90 %"), (0.99, "99 %"), (0.999, "99.9 %"), (0.9999, "99.99 %"), (0.99999, "99.999 %"))


def _axes(ax: matplotlib.axes.Axes | None) -> matplotlib.axes.Axes:
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:  # pragma: no cover
        raise Unsupported("plots need matplotlib: pip install 'nvlab[plot]'") from error
    _, made = plt.subplots(figsize=(7, 4.2), layout="constrained")
    return made


def _look(number: int) -> dict[str, Any]:
    return {"color": _COLORS[number % len(_COLORS)], "linestyle": _STYLES[number % len(_STYLES)]}


def plot_latency(result: Result, *kinds: str, ax: matplotlib.axes.Axes | None = None) -> matplotlib.axes.Axes:
    """The distribution of latency: the share of requests that take at most as long, with the tail stretched out: each nine
    has the same width."""
    ax = _axes(ax)
    from matplotlib.ticker import EngFormatter, LogLocator, NullFormatter, NullLocator

    table = result.latency_histogram
    rows: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for op, upper, count in zip(table["op"], table["upper_ns"], table["count"], strict=True):
        rows[str(op)].append((int(upper or 0), int(count or 0)))
    wanted = kinds or tuple(rows)
    missing = [kind for kind in wanted if kind not in rows]
    if missing or not wanted:
        raise InputError(f"nothing was served of {', '.join(missing) or 'any kind'}; there is {', '.join(rows)}")
    end = 1.0
    for number, kind in enumerate(wanted):
        total = sum(count for _, count in rows[kind])
        xs, ys, above = [], [], total
        for upper, count in sorted(rows[kind]):
            # The share that takes longer; of the last one, half a request, so that it is on the axis.
            above -= count
            xs.append(upper / 1e9)
            ys.append(max(above, 0.5) / total)
        end = min(end, ys[-1])
        ax.step([xs[0], *xs], [1.0, *ys], where="post", label=f"{kind} ({total:,})", **_look(number))
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.invert_yaxis()
    ticks = [(1 - share, label) for share, label in _NINES if 1 - share >= end] or [(0.5, "50 %")]
    ax.set_yticks([share for share, _ in ticks], [label for _, label in ticks])
    ax.yaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.xaxis.set_major_formatter(EngFormatter(unit="s"))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_xlabel("latency")
    ax.set_ylabel("requests that take no longer")
    _entitle(ax, result)
    ax.grid(alpha=0.3)
    ax.legend(title="requests")
    return ax


def _entitle(ax: matplotlib.axes.Axes, result: Result) -> None:
    """The run as the title, and how the device was prepared as a line above the plot."""
    prepared = textwrap.wrap(f"prepared: {result.prepared}", 100)
    ax.set_title(_short(f"{result.design}: {result.workload}", 78), pad=8 + 10 * len(prepared))
    ax.annotate(
        "\n".join(prepared), (0.5, 1), (0, 3), "axes fraction", "offset points", ha="center", va="bottom", fontsize="small"
    )


def _short(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def plot_write_amplification(result: Result, ax: matplotlib.axes.Axes | None = None) -> matplotlib.axes.Axes:
    """Write amplification over simulated time, a step for each window; the mean of the run as a line."""
    ax = _axes(ax)
    from matplotlib.ticker import EngFormatter

    table = result.series
    values = [float("nan") if value is None else float(value) for value in table["write_amplification"]]
    starts = [float(value or 0.0) for value in table["from_s"]]
    if not starts or all(value != value for value in values):
        raise InputError("this run wrote nothing to flash")
    ends = [float(value or 0.0) for value in table["to_s"]]
    ax.stairs(values, [*starts, ends[-1]], baseline=None, color=_COLORS[0], label="in each window")
    mean = result.write_amplification
    ax.axhline(mean, color=_COLORS[1], linestyle="--", label=f"whole run: {mean:.3g}")
    ax.set_ylim(bottom=0)
    ax.xaxis.set_major_formatter(EngFormatter(unit="s"))
    ax.set_xlabel("simulated time")
    ax.set_ylabel("write amplification, B programmed per B written")
    _entitle(ax, result)
    ax.grid(alpha=0.3)
    ax.legend()
    return ax


def plot_wear(result: Result, ax: matplotlib.axes.Axes | None = None) -> matplotlib.axes.Axes:
    """Erase counts: a map of the blocks, a row for each die; a histogram where the blocks are too many for a map."""
    counts = result.to_dict().get("flash")
    if counts is None or not counts["cycles_histogram"]:
        raise InputError("this design has no flash whose blocks wear")
    cycles = result.cycles
    ax = _axes(ax)
    if not cycles:
        pairs = counts["cycles_histogram"]
        ax.bar([cycle for cycle, _ in pairs], [blocks for _, blocks in pairs], width=1.0, color=_COLORS[0])
        ax.set_xlabel("erases of a block since new")
        ax.set_ylabel("blocks")
    else:
        rows = _dies(result, len(cycles))
        each = len(cycles) // rows
        grid = [cycles[row * each : (row + 1) * each] for row in range(rows)]
        image = ax.imshow(grid, aspect="auto", interpolation="nearest", cmap="viridis")
        ax.figure.colorbar(image, ax=ax, label="erases since new")
        ax.set_xlabel("block of the die")
        ax.set_ylabel("die")
        ax.set_yticks(range(rows) if rows <= 16 else range(0, rows, max(1, rows // 8)))
    _entitle(ax, result)
    return ax


def _dies(result: Result, blocks: int) -> int:
    """Dies of the data array, if the blocks divide evenly among them."""
    import tomllib

    array = tomllib.loads(result.to_dict()["design"]["resolved_toml"]).get("array", {})
    dies = int(array.get("channels", 1)) * int(array.get("ways", 1))
    return dies if dies > 0 and blocks % dies == 0 else 1


def _label(column: str) -> str:
    """The name of a column with its unit, for an axis."""
    try:
        metric = metric_of(column)
    except InputError:
        return column
    # The ticks of these have their units.
    return metric.title if metric.unit in ("", *_PREFIXED) else f"{metric.title}, {metric.unit}"


#: Units that ticks show, with a prefix of their own; nanoseconds as seconds.
_PREFIXED = ("ns", "s", "B", "B/s", "1/s")
_FACTOR = {"ns": 1e-9}


def _factor(column: str) -> float:
    metric = metrics_by_column().get(column)
    return _FACTOR.get(metric, 1.0) if metric else 1.0


def metrics_by_column() -> dict[str, str]:
    """Units by column."""
    return {metric.column: metric.unit for metric in metrics().values()}


def _format(axis: Any, column: str, values: list[Cell]) -> None:
    """Ticks with the prefixes of the unit; percent for shares of a design."""
    from matplotlib.ticker import EngFormatter, FuncFormatter

    unit = metrics_by_column().get(column)
    if unit in ("ns", "s"):
        axis.set_major_formatter(EngFormatter(unit="s"))
    elif unit in ("B", "B/s", "1/s"):
        axis.set_major_formatter(EngFormatter(unit=unit.replace("1/s", "/s")))
    elif column.endswith("_bytes"):
        axis.set_major_formatter(FuncFormatter(lambda value, _: _bytes(value)))
    elif unit is None and all(isinstance(value, float) and 0 < value <= 1 for value in values):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g} %"))


def _bytes(value: float) -> str:
    return _nvlab.display_bytes(round(value)) if value >= 0 else ""


def _groups(table: Table, by: str | None) -> dict[str, list[int]]:
    groups: dict[str, list[int]] = defaultdict(list)
    column = table[table.column_of(by)] if by is not None else [""] * len(table)
    for at, value in enumerate(column):
        groups[f"{value:.4g}" if isinstance(value, float) else str(value)].append(at)
    return groups


def plot(
    table: Table,
    x: str,
    y: str,
    by: str | None = None,
    *,
    ax: matplotlib.axes.Axes | None = None,
    **options: Any,
) -> matplotlib.axes.Axes:
    """Column `y` over column `x`, a curve for each value of `by`; the mean where several rows have the same `x`, and texts side
    by side. A metric is named with or without its unit. Options are those of `Axes.plot`."""
    ax = _axes(ax)
    x, y = table.column_of(x), table.column_of(y)
    xs, ys, factor = table[x], table[y], _factor(y)
    drawn = 0
    for number, (name, rows) in enumerate(_groups(table, by).items()):
        at: dict[Cell, list[float]] = defaultdict(list)
        for row in rows:
            value = ys[row]
            if isinstance(value, (int, float)) and xs[row] is not None:
                at[xs[row]].append(float(value) * factor)
        points: list[tuple[Any, list[float]]] = sorted(at.items(), key=lambda point: (str(type(point[0])), point[0]))
        means = [sum(values) / len(values) for _, values in points]
        drawn += len(points)
        style = {"marker": "o", "markersize": 4, **_look(number), **options}
        ax.plot([point for point, _ in points], means, label=name, **style)
    if not drawn:
        raise InputError(f"no row has both {x} and {y}")
    _format(ax.yaxis, y, ys)
    _format(ax.xaxis, x, xs)
    ax.set_xlabel(_label(x))
    ax.set_ylabel(_label(y))
    ax.grid(alpha=0.3)
    if by is not None:
        ax.legend(title=by)
    if table.about:
        ax.set_title(_short(table.about, 78))
    return ax


def plot_pareto(
    table: Table, x: str, y: str, by: str | None = None, *, ax: matplotlib.axes.Axes | None = None
) -> matplotlib.axes.Axes:
    """The rows by two metrics; those on the Pareto front are joined."""
    ax = _axes(ax)
    front = table.pareto(x, y)
    x, y = table.column_of(x), table.column_of(y)
    xs, ys = table[x], table[y]

    def point(row: int) -> tuple[float, float] | None:
        a, b = xs[row], ys[row]
        if isinstance(a, (int, float)) and isinstance(b, (int, float)):
            return a * _factor(x), b * _factor(y)
        return None

    for number, (name, rows) in enumerate(_groups(table, by).items()):
        points = [found for found in map(point, rows) if found is not None]
        ax.scatter(
            [a for a, _ in points],
            [b for _, b in points],
            s=24,
            color=_COLORS[number % len(_COLORS)],
            marker="osD^vP*"[number % 7],
            label=name or "point",
        )
    joined = sorted({found for found in map(point, front) if found is not None})
    if not joined:
        raise InputError(f"no row has both {x} and {y}")
    ax.plot([a for a, _ in joined], [b for _, b in joined], color="0.4", linewidth=1, zorder=0, label="Pareto front")
    ax.scatter([a for a, _ in joined], [b for _, b in joined], s=110, facecolors="none", edgecolors="0.4")
    _format(ax.xaxis, x, xs)
    _format(ax.yaxis, y, ys)
    ax.set_xlabel(_label(x))
    ax.set_ylabel(_label(y))
    ax.grid(alpha=0.3)
    ax.legend(title=by)
    if table.about:
        ax.set_title(_short(table.about, 78))
    return ax


def give() -> None:
    """Gives results and tables their plots."""
    for method in (plot_latency, plot_write_amplification, plot_wear):
        setattr(Result, method.__name__, method)
    for draw in (plot, plot_pareto):
        setattr(Table, draw.__name__, draw)
