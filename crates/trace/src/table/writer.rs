//! Writes a trace as a table with a header: nothing of it is lost.

use crate::text::writer::{Volume, Writer};
use crate::{Op, Request};
use nvlab_units::Span;
use std::borrow::Cow;
use std::io::Write;

/// Writes `time_ps,op,offset_bytes,length_bytes,volume,fua`, and `response_ps` if response times are known.
pub(crate) struct TableWriter {
    /// Of the next request; `None`: they are not known.
    response: Option<Span>,
}

impl TableWriter {
    pub fn new(has_responses: bool) -> TableWriter {
        TableWriter { response: has_responses.then_some(Span::ZERO) }
    }
}

impl Writer for TableWriter {
    fn keeps_fua(&self) -> bool {
        true
    }

    fn keeps_response(&self) -> bool {
        true
    }

    fn takes(&self, _op: Op) -> bool {
        true
    }

    fn begin(&mut self, _volumes: &[String], out: &mut dyn Write) -> std::io::Result<()> {
        let response = if self.response.is_some() { ",response_ps" } else { "" };
        writeln!(out, "time_ps,op,offset_bytes,length_bytes,volume,fua{response}")
    }

    fn answered(&mut self, response: Span) {
        self.response = Some(response);
    }

    fn line(&mut self, request: Request, volume: Volume, out: &mut dyn Write) -> std::io::Result<()> {
        let Request { at, op, offset, bytes, .. } = request;
        let name = match volume.name.contains('"') {
            true => Cow::Owned(volume.name.replace('"', "\"\"")),
            false => Cow::Borrowed(volume.name),
        };
        write!(out, "{},{op},{offset},{bytes},\"{name}\",{}", at.ps(), u8::from(request.fua))?;
        match self.response {
            Some(response) => writeln!(out, ",{}", response.ps()),
            None => writeln!(out),
        }
    }
}
