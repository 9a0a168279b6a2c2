"""Plots: what is drawn, in which units. Pictures are written to `$NVLAB_PICTURES` for somebody who wants to look."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import nvlab as nv
import pytest

pytest.importorskip("matplotlib", reason="matplotlib is not installed")
import matplotlib

matplotlib.use("agg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes


@pytest.fixture(autouse=True)
def pictures(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    for number in plt.get_fignums():
        plt.figure(number).canvas.draw()
        if folder := os.environ.get("NVLAB_PICTURES"):
            plt.figure(number).savefig(Path(folder) / f"{request.node.name}-{number}.png", dpi=100)
    plt.close("all")


def labels(axes: Axes) -> tuple[str, str]:
    return axes.get_xlabel(), axes.get_ylabel()


def test_latency(result: nv.Result) -> None:
    axes = result.plot_latency()
    assert labels(axes) == ("latency", "requests that take no longer")
    read = axes.get_lines()[0]
    # The curve falls through the percentiles: at p99 a hundredth of the requests takes longer.
    p99 = result.latency("read").p99_ns / 1e9
    above = [y for x, y in zip(read.get_xdata(), read.get_ydata(), strict=True) if x < p99]
    below = [y for x, y in zip(read.get_xdata(), read.get_ydata(), strict=True) if x >= p99]
    assert min(above) >= 0.01 >= max(below)
    assert len(result.plot_latency("write").get_lines()) == 1
    with pytest.raises(nv.InputError, match="nothing was served of trim"):
        result.plot_latency("trim")


def test_write_amplification(result: nv.Result) -> None:
    axes = result.plot_write_amplification()
    assert labels(axes) == ("simulated time", "write amplification, B programmed per B written")
    above = " ".join(text.get_text().replace("\n", " ") for text in axes.texts)
    assert above == f"prepared: {result.prepared}"


def test_wear(result: nv.Result) -> None:
    axes = result.plot_wear()
    image = axes.get_images()[0].get_array()
    assert image is not None and image.size == len(result.cycles) and labels(axes) == ("block of the die", "die")


def test_curves(table: nv.SweepTable) -> None:
    axes = table.plot("ftl.spare", "waf", by="ftl.clean.kind")
    assert len(axes.get_lines()) == 2 and labels(axes) == ("ftl.spare", "WA")
    assert list(axes.get_lines()[0].get_ydata()) == table["waf"][:3]
    axes = table.plot("ftl.spare", "write.p99", by="ftl.clean.kind")
    assert axes.get_ylabel() == "write p99"
    assert axes.get_lines()[0].get_ydata()[0] == pytest.approx(table["write.p99_ns"][0] / 1e9)  # type: ignore[operator]
    axes = table.plot("ftl.clean.kind", "iops", by="ftl.spare")
    assert len(axes.get_lines()) == 3
    with pytest.raises(nv.InputError, match="no column `colour`"):
        table.plot("colour", "waf")


def test_pareto(table: nv.SweepTable) -> None:
    axes = table.plot_pareto("capacity", "iops", by="ftl.clean.kind")
    front = axes.get_lines()[0]
    assert len(table.pareto("capacity", "iops")) >= len(front.get_xdata()) >= 2
    assert labels(axes) == ("capacity", "IOPS")
