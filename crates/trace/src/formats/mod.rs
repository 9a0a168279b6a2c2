//! The published formats, a file each: how one line is read ([`LineFormat`]) and written ([`Writer`]).
//!
//! A new text format is such a file, its name in [`crate::format`], and its reader and writer in the two functions here.

mod alibaba;
mod blkparse;
mod fio_iolog;
mod fiu;
mod mqsim;
mod msr;
mod spc;
mod systor;
mod tectonic;
mod tencent;
pub(crate) mod vscsi;

use crate::format::Format;
use crate::options::ReadOptions;
use crate::text::parse::LineFormat;
use crate::text::writer::Writer;

/// What is done with the reader of a text format, whichever it is.
pub(crate) trait Visitor {
    /// What the caller gets for any format.
    type Output;
    /// Called once, with the reader of the format.
    fn visit<F: LineFormat>(self, reader: F) -> Self::Output;
}

/// Hands the reader of a text to `visitor`; `None` for what is no published text: tables and binary files.
pub(crate) fn with_reader<V: Visitor>(
    format: Format,
    options: &ReadOptions,
    visitor: V,
) -> Option<V::Output> {
    Some(match format {
        Format::Msr => visitor.visit(msr::Msr::default()),
        Format::Spc => visitor.visit(spc::Spc),
        Format::Blkparse => visitor.visit(blkparse::Blkparse::new(options.action)),
        Format::FioIolog => visitor.visit(fio_iolog::FioIolog::default()),
        Format::Mqsim => visitor.visit(mqsim::Mqsim),
        Format::Alibaba => visitor.visit(alibaba::Alibaba),
        Format::Tencent => visitor.visit(tencent::Tencent),
        Format::Systor => visitor.visit(systor::Systor),
        Format::Fiu => visitor.visit(fiu::Fiu::default()),
        Format::CacheLib => visitor.visit(tectonic::CacheLib::default()),
        Format::Baleen => visitor.visit(tectonic::Baleen::default()),
        Format::Table | Format::Vscsi | Format::Nvt | Format::Parquet => return None,
    })
}

/// The writer of a text; `None` for tables, binary files, and what is only read.
pub(crate) fn writer(format: Format) -> Option<Box<dyn Writer>> {
    Some(match format {
        Format::Msr => Box::new(msr::Msr::default()),
        Format::Spc => Box::new(spc::Spc),
        Format::Blkparse => Box::new(blkparse::Blkparse::default()),
        Format::FioIolog => Box::new(fio_iolog::FioIolog::default()),
        Format::Mqsim => Box::new(mqsim::Mqsim),
        Format::Alibaba => Box::new(alibaba::Alibaba),
        Format::Tencent => Box::new(tencent::Tencent),
        Format::Systor => Box::new(systor::SystorWriter::default()),
        Format::Fiu => Box::new(fiu::Fiu::default()),
        Format::CacheLib | Format::Baleen | Format::Table => return None,
        Format::Vscsi | Format::Nvt | Format::Parquet => return None,
    })
}
