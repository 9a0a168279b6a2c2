//! The ends of a served device: it is lost when it panics or does not recover, and its time ends.

use super::{DriveError, Inner};
use nvlab_os::stores::publish;
use nvlab_units::Time;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Why a device is lost.
#[derive(Clone, Debug)]
pub(super) enum Lost {
    /// It did not recover after a power cut.
    Recovery(String),
    /// The controller panicked with this message.
    Panic(String),
}

impl Lost {
    pub fn why(&self) -> &str {
        match self {
            Lost::Recovery(why) | Lost::Panic(why) => why,
        }
    }
}

/// The message of a panic.
fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a message")
}

impl Inner {
    /// Calls the device, which is lost if it panics.
    #[inline]
    pub(super) fn guarded<R>(
        &mut self,
        act: impl FnOnce(&mut Inner) -> Result<R, DriveError>,
    ) -> Result<R, DriveError> {
        match catch_unwind(AssertUnwindSafe(|| act(self))) {
            Ok(done) => done,
            Err(panic) => {
                self.lose(&format!("its controller panicked: {}", panic_text(&*panic)));
                self.present().map(|_| unreachable!("a device that was lost"))
            }
        }
    }

    /// The device is lost.
    #[cold]
    pub(super) fn lose(&mut self, why: &str) {
        publish();
        // It is not dropped: that would run code of a controller in an unknown state.
        std::mem::forget(self.device.take());
        if self.lost.is_none() {
            eprintln!(
                "nvlab: {}: {why}; from now on every request is refused, and its media stay as they are for the next \
             start",
                self.name
            );
            self.lost = Some(Lost::Panic(why.to_string()));
        }
    }

    /// An operation would end after the end of time: its reply would never be due. What it did is in the media, as after a
    /// failed request; no other one is begun.
    #[cold]
    pub(super) fn time_is_over(&mut self) -> DriveError {
        self.clock.skip(Time::MAX);
        if !std::mem::replace(&mut self.is_over, true) {
            eprintln!(
                "nvlab: {}: {}; from now on every request is refused",
                self.name,
                DriveError::TimeIsOver
            );
        }
        DriveError::TimeIsOver
    }
}
