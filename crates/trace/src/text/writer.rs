//! What every text format provides to be written.

use crate::{Op, Request};
use nvlab_units::Span;
use std::io::Write;

/// A writer of a text format.
pub(crate) trait Writer {
    /// Offsets are in this unit and must be multiples of it.
    fn sector_bytes(&self) -> u64 {
        1
    }
    /// Force unit access can be represented.
    fn keeps_fua(&self) -> bool {
        false
    }
    /// Response times can be represented.
    fn keeps_response(&self) -> bool {
        false
    }

    /// The operations it can represent.
    fn takes(&self, op: Op) -> bool {
        matches!(op, Op::Read | Op::Write)
    }
    /// Writes what precedes the first request.
    fn begin(&mut self, _volumes: &[String], _out: &mut dyn Write) -> std::io::Result<()> {
        Ok(())
    }
    /// Sets the response time of the next request.
    fn answered(&mut self, _response: Span) {}
    /// Writes one request with a supported operation.
    fn line(&mut self, request: Request, volume: Volume, out: &mut dyn Write) -> std::io::Result<()>;
    /// Writes what follows the last request.
    fn end(&mut self, _volumes: &[String], _out: &mut dyn Write) -> std::io::Result<()> {
        Ok(())
    }
}

/// The identifier of a volume: for formats with names, and for formats with numbers.
#[derive(Clone, Copy)]
pub(crate) struct Volume<'a> {
    pub name: &'a str,
    pub number: u64,
}
