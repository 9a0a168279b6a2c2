//! Logs on flash whose blocks fail, or slow down.

use super::Scenario;
use nvlab_run::State;

/// Spares replace blocks that fail.
pub const WORN: Scenario = Scenario {
    name: "a log on flash that wears out",
    builtin: "rvm-flash",
    sets: &[
        "media.flash.block=2 KiB",
        "ftl.log.size=256 KiB",
        "ftl.log.spares=40",
        "media.flash.endurance=3",
        "media.flash.faults.wear_out=true",
        "media.flash.faults.erase_failure=5 %",
    ],
    workload: "debit-credit accounts=1000",
    until: "1500 io",
    state: State::Fresh,
};

/// Each cycle adds 2 us to a program and 200 ms to an erase.
pub const SLOWING: Scenario = Scenario {
    name: "a log on flash that slows down",
    builtin: "rvm-flash",
    sets: &[
        "media.flash.block=2 KiB",
        "ftl.log.size=256 KiB",
        "ftl.log.spares=4",
        "media.flash.endurance=3",
        "media.flash.program_worn=12 us",
        "media.flash.erase_worn=1.2 s",
        "media.flash.program_limit=28 us",
        "media.flash.erase_limit=3 s",
        "media.flash.cycles_done=1",
    ],
    workload: "debit-credit accounts=1000",
    until: "1500 io",
    state: State::Fresh,
};
