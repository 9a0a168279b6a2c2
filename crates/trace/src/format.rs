//! The trace formats by name: which there are, and which can be written.

use std::fmt;
use std::path::Path;

/// The trace formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// MSR Cambridge csv.
    Msr,
    /// SPC (Storage Performance Council), as in the UMass collection.
    Spc,
    /// Text of `blkparse`, default output.
    Blkparse,
    /// fio iolog, version 2 or 3; version 3 is written.
    FioIolog,
    /// MQSim ASCII trace.
    Mqsim,
    /// Alibaba block traces (2020).
    Alibaba,
    /// Tencent cloud block storage.
    Tencent,
    /// SYSTOR '17: block traces of virtual desktops.
    Systor,
    /// FIU: block traces with a hash of the content.
    Fiu,
    /// CloudPhysics vscsi, binary records of either version; read only.
    Vscsi,
    /// Meta's storage traces, as csv; read only.
    CacheLib,
    /// Meta's storage traces, as published with Baleen; read only.
    Baleen,
    /// Any text table, by the names of its columns.
    Table,
    /// Our own column file, [`crate::nvt`].
    Nvt,
    /// A Parquet table.
    Parquet,
}

impl Format {
    /// All of them.
    pub const ALL: [Format; 15] = [
        Format::Msr,
        Format::Spc,
        Format::Blkparse,
        Format::FioIolog,
        Format::Mqsim,
        Format::Alibaba,
        Format::Tencent,
        Format::Systor,
        Format::Fiu,
        Format::Vscsi,
        Format::CacheLib,
        Format::Baleen,
        Format::Table,
        Format::Nvt,
        Format::Parquet,
    ];

    /// The name, as written after the colon.
    pub const fn name(self) -> &'static str {
        match self {
            Format::Msr => "msr",
            Format::Spc => "spc",
            Format::Blkparse => "blkparse",
            Format::FioIolog => "iolog",
            Format::Mqsim => "mqsim",
            Format::Alibaba => "alibaba",
            Format::Tencent => "tencent",
            Format::Systor => "systor",
            Format::Fiu => "fiu",
            Format::Vscsi => "vscsi",
            Format::CacheLib => "cachelib",
            Format::Baleen => "baleen",
            Format::Table => "table",
            Format::Nvt => "nvt",
            Format::Parquet => "parquet",
        }
    }

    /// The format with this name.
    pub(crate) fn from_name(name: &str) -> Option<Format> {
        let name = name.to_ascii_lowercase();
        match name.as_str() {
            "fio_iolog" | "fio-iolog" | "fio" => Some(Format::FioIolog),
            "systor17" | "systor-17" => Some(Format::Systor),
            _ => Format::ALL.into_iter().find(|format| format.name() == name),
        }
    }

    /// True if traces can be written in it: requests name no blocks of others' making.
    pub const fn is_written(self) -> bool {
        !matches!(self, Format::Vscsi | Format::CacheLib | Format::Baleen)
    }

    /// True if it is text, line by line.
    pub(crate) const fn is_text(self) -> bool {
        !matches!(self, Format::Nvt | Format::Parquet | Format::Vscsi)
    }

    /// The format implied by a file name, ignoring compression suffixes. `.csv` implies none: many formats use it.
    pub fn from_file_name(path: &Path) -> Option<Format> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        let name = name.strip_suffix(".gz").or(name.strip_suffix(".zst")).unwrap_or(&name);
        Format::from_name(name.rsplit_once('.')?.1)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
