"""A laboratory for non-volatile storage.

Describe a storage design, point it at a workload, and learn its speed, write amplification, lifetime and price::

    import nvlab as nv

    d = nv.design("ssd-tlc").set("ftl.clean.kind", "fifo")
    r = nv.run(d, nv.workload("zipf", read="70%", qd=16), until="1e6 io")
    r.write_amplification, r.latency("read").p99_ns, r.lifetime_years
    t = nv.sweep(d, {"ftl.spare": nv.arange("7 %", "28 %", "7 %")}, "uniform qd=32")
    t.polars()

Simulations run in Rust without the interpreter: other threads continue, Ctrl-C ends them. Tables are handed over by the Arrow C
stream interface. Nothing else needs to be installed; `nvlab[plot]` is for the plots.
"""

from __future__ import annotations

from . import _plots
from ._command import cli
from ._cut import Cuts, Loss, cut
from ._design import Design, Difference, design, designs, schema, template
from ._device import Counters, Device, Recovery, device
from ._errors import (
    BusyError,
    CommandError,
    DamagedError,
    DesignError,
    Error,
    InputError,
    NvlabWarning,
    PersistenceError,
    Problem,
    RunError,
    TraceError,
    Unsupported,
    WorkloadError,
)
from ._fit import Choice, Fit, choose, fit
from ._nvlab import COMMIT, VERSION
from ._parts import Fact, Part, explain, part, parts
from ._reproduce import Reproduction, reproduce
from ._result import Latency, Metrics, Result, load, write_report
from ._run import Comparison, compare, run
from ._search import Search, search
from ._sweep import SweepTable, load_sweep, sweep
from ._table import Metric, Table, metrics
from ._text import arange, geomspace, linspace
from ._trace import Trace, TraceInfo, make_trace, trace
from ._workload import Workload, workload

_plots.give()

__version__ = VERSION

__all__ = [
    "COMMIT",
    "VERSION",
    "BusyError",
    "Choice",
    "CommandError",
    "Comparison",
    "Counters",
    "Cuts",
    "DamagedError",
    "Design",
    "DesignError",
    "Device",
    "Difference",
    "Error",
    "Fact",
    "Fit",
    "InputError",
    "Latency",
    "Loss",
    "Metric",
    "Metrics",
    "NvlabWarning",
    "Part",
    "PersistenceError",
    "Problem",
    "Recovery",
    "Reproduction",
    "Result",
    "RunError",
    "Search",
    "SweepTable",
    "Table",
    "Trace",
    "TraceError",
    "TraceInfo",
    "Unsupported",
    "Workload",
    "WorkloadError",
    "arange",
    "choose",
    "cli",
    "compare",
    "cut",
    "design",
    "designs",
    "device",
    "explain",
    "fit",
    "geomspace",
    "linspace",
    "load",
    "load_sweep",
    "make_trace",
    "metrics",
    "part",
    "parts",
    "reproduce",
    "run",
    "schema",
    "search",
    "sweep",
    "template",
    "trace",
    "workload",
    "write_report",
]
