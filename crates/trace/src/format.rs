//! The trace formats by name: which there are, which are text, and which can be written.

use std::fmt;
use std::path::Path;

macro_rules! formats {
    ($($(#[doc = $doc:literal])* $variant:ident: $name:literal, [$($alias:literal),*], text $text:literal, written $written:literal;)*) => {
        /// The formats that traces are read from or written to.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Format {
            $($(#[doc = $doc])* $variant,)*
        }

        impl Format {
            /// Every format, whether it can be written or not.
            pub const ALL: [Format; [$($name),*].len()] = [$(Format::$variant),*];

            /// The name, as written after the colon.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Format::$variant => $name,)*
                }
            }

            /// Names that mean the same.
            const fn aliases(self) -> &'static [&'static str] {
                match self {
                    $(Format::$variant => &[$($alias),*],)*
                }
            }

            /// True if it is text, line by line.
            pub(crate) const fn is_text(self) -> bool {
                match self {
                    $(Format::$variant => $text,)*
                }
            }

            /// True if traces can be written in it: requests name no blocks of others' making.
            pub const fn is_written(self) -> bool {
                match self {
                    $(Format::$variant => $written,)*
                }
            }
        }
    };
}

formats! {
    /// MSR Cambridge, csv (Narayanan et al., FAST 2008).
    Msr: "msr", [], text true, written true;
    /// SPC (Storage Performance Council), as in the UMass collection.
    Spc: "spc", [], text true, written true;
    /// Text of `blkparse`, default output.
    Blkparse: "blkparse", [], text true, written true;
    /// fio iolog, version 2 or 3; version 3 is written.
    FioIolog: "iolog", ["fio_iolog", "fio-iolog", "fio"], text true, written true;
    /// MQSim's ASCII traces.
    Mqsim: "mqsim", [], text true, written true;
    /// Alibaba block traces (2020).
    Alibaba: "alibaba", [], text true, written true;
    /// Tencent cloud block storage, csv.
    Tencent: "tencent", [], text true, written true;
    /// SYSTOR '17: block traces of virtual desktops.
    Systor: "systor", ["systor17", "systor-17"], text true, written true;
    /// FIU: block traces with a hash of the content.
    Fiu: "fiu", [], text true, written true;
    /// CloudPhysics vscsi, binary records of either version; read only.
    Vscsi: "vscsi", [], text false, written false;
    /// Meta's storage traces, as csv; read only.
    CacheLib: "cachelib", [], text true, written false;
    /// Meta's storage traces, as published with Baleen; read only.
    Baleen: "baleen", [], text true, written false;
    /// Any text table, by the names of its columns.
    Table: "table", [], text true, written true;
    /// Column file of nvlab, [`crate::nvt`].
    Nvt: "nvt", [], text false, written true;
    /// A Parquet table, by the names of its columns.
    Parquet: "parquet", [], text false, written true;
}

impl Format {
    /// The format of this name or alias, in any case.
    pub fn from_name(name: &str) -> Option<Format> {
        let name = name.to_ascii_lowercase();
        let is_called = |format: &Format| format.name() == name || format.aliases().contains(&name.as_str());
        Format::ALL.into_iter().find(is_called)
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
