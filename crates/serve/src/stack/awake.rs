//! Idle processors that poll instead of sleeping: what waking one takes is the machine's, and varies threefold in a virtual one.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};

/// Linux's limit for the time an idle processor may take to wake (PM QoS): it holds while the file is open.
const LIMIT: &str = "/dev/cpu_dma_latency";

/// While this lives, idle processors poll.
pub(super) struct Awake {
    _limit: File,
}

impl Awake {
    /// Needs write access to the device file: root.
    pub fn keep() -> io::Result<Awake> {
        let mut limit = OpenOptions::new().write(true).open(LIMIT)?;
        limit.write_all(&0i32.to_ne_bytes())?; // microseconds
        Ok(Awake { _limit: limit })
    }

    /// Why processors sleep, if they do.
    pub fn said(error: &io::Error) -> String {
        format!("{LIMIT}: {error}")
    }
}
