"""Searches for the Pareto front."""

from __future__ import annotations

import pickle

import nvlab as nv
import pytest

pytest.importorskip("optuna", reason="Optuna is not installed")

SPACE = {
    "ftl.spare": nv.arange("8 %", "40 %", "4 %"),
    "ftl.clean.kind": ["greedy", "fifo", "cost-benefit"],
    "ftl.free_blocks_min": [2, 16],
}
SETTINGS = {"until": "0.4 x capacity", "precondition": "full"}
OBJECTIVES = ["capacity", "waf"]


def covered(rows: list[tuple[float, float]], worst_waf: float) -> float:
    """The area that a front covers: more capacity is better, less write amplification, too."""
    area, edge = 0.0, worst_waf
    for capacity, waf in sorted(rows, key=lambda row: (-row[0], row[1])):
        if waf < edge:
            area += capacity * (edge - waf)
            edge = waf
    return area


@pytest.fixture(scope="module")
def grid() -> nv.SweepTable:
    return nv.sweep("bench-4g", SPACE, "zipf qd=8", **SETTINGS)


def test_a_third_of_the_grid_finds_the_front(grid: nv.SweepTable) -> None:
    def points(table: nv.Table) -> list[tuple[float, float]]:
        return [(float(row["capacity_bytes"]), float(row["waf"])) for row in table]  # type: ignore[arg-type]

    found = nv.search("bench-4g", SPACE, "zipf qd=8", OBJECTIVES, runs=18, **SETTINGS)
    assert found.points == len(grid) == 54 and len(found) == 18
    worst = max(waf for _, waf in points(grid)) * 1.01
    best = covered(points(grid), worst)
    assert covered(points(found.front), worst) > 0.97 * best
    # What is found are points of the grid, and the front is not beaten among them.
    assert set(points(found)) <= set(points(grid))
    front = points(found.front)
    assert not any(a != b and b[0] >= a[0] and b[1] <= a[1] for a in front for b in points(found))
    again = nv.search("bench-4g", SPACE, "zipf qd=8", OBJECTIVES, runs=18, jobs=1, **SETTINGS)
    assert again.arrow() == found.arrow()
    assert pickle.loads(pickle.dumps(found)).arrow() == found.arrow()
    assert "front" in str(found)


def test_points_that_are_behind_are_given_up() -> None:
    space = {"ftl.spare": ["16 %", "20 %"], "ftl.clean.kind": ["greedy", "fifo"]}
    # The drive is in its steady state: without it, the first writes would tell nothing of cleaning.
    settings = {"until": "0.2 x capacity", "glance": "0.05 x capacity", "precondition": "steady"}
    found = nv.search("bench-4g", space, "zipf qd=8", OBJECTIVES, runs=4, at_once=1, **settings)
    assert len(found) == found.points == 4, "every point was looked at, none twice"
    given_up = [row for row in found if row["given_up"]]
    assert given_up and not any(row["given_up"] for row in found.front)
    for row in given_up:
        same = [other for other in found if other["capacity_bytes"] == row["capacity_bytes"] and not other["given_up"]]
        assert any(other["waf"] < 0.9 * row["waf"] for other in same), row  # type: ignore[operator]


def test_what_cannot_be_searched() -> None:
    with pytest.raises(nv.InputError, match="two objectives"):
        nv.search("bench-4g", SPACE, "zipf", ["waf"], **SETTINGS)
    with pytest.raises(nv.InputError, match="no metric"):
        nv.search("bench-4g", SPACE, "zipf", ["waf", "beauty"], **SETTINGS)
    with pytest.raises(nv.InputError, match="neither better"):
        neutral = next(metric.name for metric in nv.metrics().values() if not metric.better)
        nv.search("bench-4g", SPACE, "zipf", ["waf", neutral], **SETTINGS)
    with pytest.warns(nv.NvlabWarning, match="gredy"):
        space = {"ftl.clean.kind": ["greedy", "gredy"], "ftl.spare": ["10 %", "20 %"]}
        found = nv.search("bench-4g", space, "zipf qd=8", OBJECTIVES, until="1000 io", precondition="fresh")
    assert len(found) == 4 and found["waf"].count(None) == 2
