"""Runs on the workers of a cluster of Dask.distributed.

A worker gets a design and a workload as texts, and sends back a result with its key, which must be the one that was expected: a
worker with another version of nvlab, or with another file under the workload's path, is detected. Results are stored as they
arrive; they do not depend on which worker runs a point, or how often.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _nvlab
from ._errors import InputError, RunError, Unsupported
from ._frame import Tables, keep_tables, tables_of

if TYPE_CHECKING:
    from ._progress import Report
    from ._run import Options

#: Points handed out for each thread of the cluster: enough that no worker waits, few enough that a million points fit in memory.
_AHEAD = 4
#: How often a point is tried that takes its worker with it.
_TRIES = 3

#: A result (as `Run.parts` gives it), or why there is none.
Answer = tuple[str, float] | str


def work(errand: dict[str, Any], cache: str | None, cache_bytes: int, tables: Tables) -> Answer:
    """Runs a point, on a worker; results are not stored there, prepared devices are. `tables`: those that workloads name."""
    keep_tables(tables)
    folder = Path(cache) if cache is not None else None
    settings = _nvlab.Settings(None, [], 1, folder, cache_bytes, False)
    name, text, sets = errand["design"]
    design = _nvlab.Design(name, text, sets)
    found, _ = _nvlab.simulate(
        [design], errand["workload"], [errand["seed"]], errand["until"], errand["state"], settings, None
    )
    if isinstance(found[0], BaseException):
        return str(found[0])
    result, wall_s, _, _ = found[0][0].parts()
    return result, wall_s


@contextmanager
def _client(on: Any) -> Iterator[Any]:
    """A client, closed afterwards if it was made here."""
    try:
        import distributed
    except ImportError:
        raise Unsupported("a cluster needs Dask.distributed: pip install 'nvlab[dask]'") from None
    if isinstance(on, distributed.Client):
        yield on
        return
    if not isinstance(on, str) or (on != "dask" and not on.startswith("dask:")):
        raise InputError(f'on={on!r}: "local", "dask", "dask:tcp://HOST:PORT" or a client of Dask.distributed')
    if on == "dask":
        cluster = distributed.LocalCluster(
            n_workers=len(os.sched_getaffinity(0)), threads_per_worker=1, dashboard_address=None
        )
        with cluster, distributed.Client(cluster) as client:
            yield client
        return
    try:
        client = distributed.Client(on.removeprefix("dask:"), timeout="5s")
    except (OSError, TimeoutError, ValueError) as error:
        raise Unsupported(f"there is no scheduler at {on.removeprefix('dask:')}: {error}") from None
    with client:
        yield client


def run_on(on: Any, errands: str, options: Options, report: Report | None) -> dict[int, str]:
    """Runs points (JSON, as `Space.errands` gives them) on a cluster and keeps their results below `options["out"]`; returns why
    the others have none."""
    _refuse_force(options)
    waiting: list[dict[str, Any]] = json.loads(errands)
    if not waiting:
        return {}
    with _client(on) as client:
        return _run_all(client, waiting, options, report)


@contextmanager
def cluster(on: Any, options: Options, report: Report | None) -> Iterator[tuple[Options, Callable[[str], dict[int, str]]]]:
    """What runs points (JSON) on a cluster, batch after batch, and the options with which their results are found."""
    _refuse_force(options)
    with tempfile.TemporaryDirectory() as folder, _client(on) as client:
        kept: Options = {**options, "out": options.get("out") or folder}
        yield kept, lambda errands: _run_all(client, json.loads(errands), kept, report)


def _refuse_force(options: Options) -> None:
    """A cluster runs what has no result yet."""
    if options.get("force"):
        raise InputError("what is kept is not run again on a cluster: give another folder as out")


def _run_all(client: Any, waiting: list[dict[str, Any]], options: Options, report: Report | None) -> dict[int, str]:
    import distributed

    failed: dict[int, str] = {}

    out = Path(options["out"] or ".")
    cache = _worker_cache(options)
    asked, done = len(waiting), 0
    # Each worker gets the data frames once; another worker has them when one dies.
    tables: Any = tables_of(errand["workload"] for errand in waiting)
    if tables:
        tables = client.scatter(tables, broadcast=True, hash=False)
    ahead = max(1, sum(client.nthreads().values())) * _AHEAD
    rest = iter(waiting)
    tries: dict[int, int] = {}
    futures: dict[Any, dict[str, Any]] = {}
    running = distributed.as_completed(loop=client.loop, with_results=False)

    def submit(errand: dict[str, Any]) -> None:
        room = options.get("cache_bytes", 4 << 30)
        future = client.submit(work, errand, cache, room, tables, pure=False, retries=0)
        futures[future] = errand
        running.add(future)

    try:
        for errand in (errand for _, errand in zip(range(ahead), rest)):
            submit(errand)
        for future in running:
            errand = futures.pop(future)
            number = errand["point"]
            try:
                answer = _answer(future)
            except distributed.KilledWorker as lost:
                tries[number] = tries.get(number, 0) + 1
                if tries[number] < _TRIES:
                    submit(errand)
                    continue
                answer = f"{tries[number]} workers died while they ran it: {lost}"
            if isinstance(answer, str):
                failed[number] = answer
            else:
                _keep(errand, answer, out)
            done += 1
            if report is not None:
                report(done, asked, [])
            for errand in (errand for _, errand in zip(range(1), rest)):
                submit(errand)
    finally:
        # What is not done when this ends early is not wanted any more.
        client.cancel(list(futures), force=True)
    return failed


def _answer(future: Any) -> Answer:
    import distributed

    if future.status == "cancelled":
        raise RunError("the cluster is gone; what was done is kept, and the same sweep goes on where it was")
    try:
        answer: Answer = future.result(timeout=60)
    except (distributed.CancelledError, distributed.comm.CommClosedError) as error:
        raise RunError(f"the cluster is gone ({error}); what was done is kept") from None
    return answer


def _keep(errand: dict[str, Any], answer: tuple[str, float], out: Path) -> None:
    run = _nvlab.Run.from_parts(answer[0], answer[1], None, False)
    if run.key != errand["key"]:
        raise RunError(
            f"{errand['title']}: a worker ran {run.key} where {errand['key']} was asked for: it has another version of nvlab, "
            "or other files"
        )
    run.save(out)


def _worker_cache(options: Options) -> str | None:
    """Where workers store prepared devices: the given folder, else that of each worker's user."""
    cache = options.get("cache")
    if cache is False:
        return None
    own = cache or os.environ.get("NVLAB_CACHE") or _nvlab.user_folder()
    return None if own is None else os.fspath(own)


def main() -> None:
    """Called by `nvlab sweep --on`: reads its task from stdin, and prints why points failed."""
    asked = json.load(sys.stdin)
    from ._errors import Error
    from ._progress import Reporter

    options: Options = {"out": asked["out"], "cache": asked["cache"] or False, "cache_bytes": asked["cache_bytes"]}
    try:
        with Reporter(asked["progress"] and None) as reporter:
            failed = run_on(asked["on"], json.dumps(asked["errands"]), options, reporter.report)
    except Error as error:
        print(json.dumps({"error": str(error), "unsupported": isinstance(error, Unsupported)}))
    else:
        print(json.dumps({"failed": failed}))


if __name__ == "__main__":
    main()
