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
    with pytest.raises(nv.InputError, match="not a metric"):
        nv.search("bench-4g", SPACE, "zipf", ["waf", "beauty"], **SETTINGS)
    with pytest.raises(nv.InputError, match="neither better"):
        neutral = next(metric.name for metric in nv.metrics().values() if not metric.better)
        nv.search("bench-4g", SPACE, "zipf", ["waf", neutral], **SETTINGS)
    with pytest.warns(nv.NvlabWarning, match="gredy"):
        space = {"ftl.clean.kind": ["greedy", "gredy"], "ftl.spare": ["10 %", "20 %"]}
        found = nv.search("bench-4g", space, "zipf qd=8", OBJECTIVES, until="1000 io", precondition="fresh")
    assert len(found) == 4 and found["waf"].count(None) == 2


def test_a_search_for_life_warns_of_runs_that_did_not_clean() -> None:
    space = {"ftl.spare": nv.arange("10 %", "40 %", "10 %")}
    with pytest.warns(nv.NvlabWarning, match="lifetimes of 3 of 3 runs do not include the cost of cleaning"):
        nv.search("bench-4g", space, "zipf qd=8", ["capacity", "lifetime"], runs=3, until="2000 io", precondition="full")


def test_a_search_answers_a_real_question() -> None:
    """The question of docs/tutorials/which-drive-to-buy.md on a part of its space; a warning would fail it."""
    small = {"media.tlc.blocks": 128, "media.tlc.pages": 36, "ftl.map.checkpoint": "1 GiB", "ftl.free_blocks_min": 2}
    drive = nv.design("ssd-tlc").with_(small)
    space = {"ftl.spare": nv.arange("14 %", "38 %", "6 %"), "ftl.clean.kind": ["fifo", "cost-benefit", "d-choices"]}
    objectives, load = ["price.gib", "lifetime.dwpd"], "zipf read=70% bs=8KiB rate=20k/s"
    grid = nv.sweep(drive, space, load, until="1 x capacity")
    best = list(grid)
    front = {(best[at]["price.gib_usd"], best[at]["lifetime.dwpd"]) for at in grid.pareto(*objectives)}
    found = nv.search(drive, space, load, objectives, runs=10, until="1 x capacity")
    hit = {(row["price.gib_usd"], row["lifetime.dwpd"]) for row in found.front} & front
    assert len(found) == 10 < len(grid) == 15 and len(hit) >= 0.6 * len(front)
    assert min(grid["lifetime.regained"]) > 0.9  # type: ignore[type-var, operator]
