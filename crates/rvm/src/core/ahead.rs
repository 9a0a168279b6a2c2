//! Write-ahead: the ranges of a transaction that its program most likely leaves as they are go to the log before its commit, if the
//! log can do that ([`crate::Log::write_ahead`]).
//!
//! Its record will begin at the tail, if no other comes first, and will begin with these ranges, if later ones lie behind them; otherwise
//! the commit writes what differs, and this was waste. The record's header, with its checksum, is not written ahead: without it there
//! is no record, whatever a power failure leaves.

use super::memory::Memory;
use super::ranges::Covered;
use super::state::Core;
use super::transaction::RawTransaction;
use crate::Result;
use crate::record::Encoder;

impl Core {
    /// Writes the ranges so far ahead, once enough of them are new.
    ///
    /// # Safety
    /// As for [`RawTransaction::set_range`].
    pub(crate) unsafe fn write_ahead(&self, transaction: &mut RawTransaction) -> Result<()> {
        let Some(large) = self.ahead_bytes_min else { return Ok(()) };
        // What a large one has more goes to the disk in smaller parts, so that little is left to the commit.
        let least = if transaction.ahead_at == 0 { large } else { large / 4 };
        // The record of either is known only as a whole.
        if self.options.compress || self.options.diff || transaction.bytes < transaction.ahead_at + least {
            return Ok(());
        }
        transaction.settle();
        let bytes = transaction.bytes;
        let mut record = vec![0; transaction.needed() as usize];
        let mut encoder = Encoder::new(&mut record, self.options.headers);
        for &Covered { memory, start, end } in transaction.ranges() {
            let region: &Memory = &transaction.memories()[memory as usize];
            // SAFETY: as the caller promises.
            encoder.range(region.segment, region.offset + start as u64, unsafe { region.slice(start..end) });
        }
        let (from, to) = (self.options.headers.before_ranges(), encoder.end());
        let mut state = self.state();
        state.check()?;
        // The name of a segment would come first.
        let is_named = |memory: &std::sync::Arc<Memory>| state.segments[memory.segment as usize].is_named;
        let room = state.status.head + self.capacity - state.tail();
        let is_next = !state.is_forcing && transaction.memories().iter().all(is_named);
        if !is_next || transaction.needed() > room {
            return Ok(());
        }
        // No other record comes first while the state is locked.
        let mut log = self.log();
        let written = log.write_ahead(state.tail() + from as u64, &record[from..to]);
        state.statistics.ahead_wasted_bytes = log.ahead_wasted_bytes();
        drop(log);
        match written {
            Ok(written) => {
                state.statistics.ahead_bytes += written as u64;
                transaction.ahead_at = bytes;
                Ok(())
            }
            Err(error) => Err(self.fail(state, error)),
        }
    }
}
