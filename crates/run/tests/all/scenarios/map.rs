//! Maps that are read from flash on demand.

use super::Scenario;
use nvlab_run::State;

/// A part on the chip, more in the host's memory, most in flash.
pub const ON_DEMAND: Scenario = Scenario {
    name: "map on demand",
    builtin: "dramless-hmb-512gb",
    sets: &[
        "array.ways=1",
        "media.tlc.pages=48",
        "media.tlc.blocks=48",
        "ftl.capacity=300 MiB",
        "ftl.buffer.size=2 MiB",
        "ftl.map.cache=32 KiB",
        "ftl.map.host_buffer=64 KiB",
        "ftl.map.checkpoint=32 MiB",
        "ftl.wear.threshold=2",
    ],
    workload: "uniform rw=randrw read=30% trim=5% bs=4KiB qd=16 flush=50",
    until: "60000 io",
    state: State::Full,
};
