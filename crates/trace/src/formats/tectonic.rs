//! Meta's traces of Tectonic, its storage for bulk data, which name blocks instead of addresses: the csv files published with
//! CacheLib, and the text files published with Baleen. A block gets a place on the device when it is first accessed, one behind
//! the other, so the addresses say which requests meet, not where the blocks were. One volume; gets are reads, puts writes. A
//! row is one request, whatever its `op_count`: how many alike there were in the second.
//!
//! ```text
//! op_time,block_id,block_id_size,io_size,io_offset,user_name,user_namespace,op_name,op_count,host_name,rs_shard_id
//! 1679700000,4063,40,1048576,2097152,12,1,getChunkData.Permanent,1,77,3
//!
//! block_id io_offset io_size op_time op_name [pipeline ...]
//! 310 262144 4325376 1572074461.57806 1 24 3 5
//! ```
//!
//! After the trace formats of cachelib.org (Evaluating SSD hardware for Facebook workloads), of cacheMon's cache dataset, and of
//! the Baleen24 data set (PDL of Carnegie Mellon); Wong et al., Baleen: ML Admission & Prefetching for Flash Caches, FAST '24.

use crate::Op;
use crate::rows::Rows;
use crate::text::fields::{Fields, decimal_seconds};
use crate::text::lines::{Bad, BadLine, Line};
use crate::text::parse::LineFormat;
use std::collections::HashMap;

/// The csv of CacheLib.
#[derive(Clone, Default)]
pub(crate) struct CacheLib {
    places: Places,
    /// `block_id,rs_shard_id` of the line.
    name: Vec<u8>,
}

/// The text of Baleen.
#[derive(Clone, Default)]
pub(crate) struct Baleen {
    places: Places,
}

/// Of a block in Baleen's traces, the most.
const BALEEN_BLOCK_BYTES: u64 = 8 << 20;
/// The most that a block has been said to have, MiB.
const BLOCK_MIB_MAX: u64 = 1 << 20;

/// Where the blocks are, by their names.
#[derive(Clone, Default)]
struct Places {
    starts: HashMap<Vec<u8>, u64>,
    next: u64,
}

impl Places {
    /// The address of `offset` in a block of `block_bytes`, which may be new.
    fn address(&mut self, name: &[u8], block_bytes: u64, offset: u64, bytes: u64) -> Result<u64, BadLine> {
        if offset.checked_add(bytes).is_none_or(|end| end > block_bytes) {
            let allowed = format!("io_offset + io_size is at most the {block_bytes} bytes of a block");
            return Err(Bad::new("io_offset", &offset.to_string(), allowed));
        }
        if let Some(start) = self.starts.get(name) {
            return Ok(start + offset);
        }
        let start = self.next;
        let end = start.checked_add(block_bytes);
        self.next =
            end.ok_or_else(|| Bad::bytes("block_id", name, "all blocks together less than 2^64 bytes"))?;
        self.starts.insert(name.to_vec(), start);
        Ok(start + offset)
    }
}

impl LineFormat for CacheLib {
    const TICK_PS: u64 = 1000;
    const COLUMNS: &'static str = "op_time,block_id,block_id_size,io_size,io_offset,user_name,user_namespace,op_name,op_count,host_name,rs_shard_id";

    fn line(&mut self, line: Line<'_>, rows: &mut Rows) -> Result<(), BadLine> {
        let mut fields = Fields::<b','>::new(line);
        let ns = fields.seconds("op_time")?;
        let block = fields.text("block_id")?;
        let block_mib = fields.integer("block_id_size")?;
        if !(1..=BLOCK_MIB_MAX).contains(&block_mib) {
            let allowed = format!("MB of a block, from 1 to {BLOCK_MIB_MAX}");
            return Err(Bad::new("block_id_size", &block_mib.to_string(), allowed));
        }
        let bytes = fields.integer("io_size")?;
        let offset = fields.integer("io_offset")?;
        for column in ["user_name", "user_namespace"] {
            fields.cell(column)?;
        }
        let op = match fields.text("op_name")? {
            name if name.starts_with(b"getChunkData") => Op::Read,
            name if name.starts_with(b"putChunk") => Op::Write,
            other => return Err(Bad::bytes("op_name", other, "getChunkData.KIND or putChunk.KIND")),
        };
        for column in ["op_count", "host_name"] {
            fields.cell(column)?;
        }
        let shard = fields.cell("rs_shard_id")?;
        fields.end(Self::COLUMNS)?;
        self.name.clear();
        [block, b",", shard].iter().for_each(|part| self.name.extend_from_slice(part));
        let address = self.places.address(&self.name, block_mib << 20, offset, bytes)?;
        let volume = rows.volumes.numbered(0)?;
        rows.push(ns, address, bytes, op, volume)
    }

    fn is_free(&self) -> bool {
        false
    }
}

impl Baleen {
    /// Columns of the years 2019, 2021 and 2023: those behind the first five say who asked.
    const COUNTS: std::ops::RangeInclusive<usize> = 8..=10;
}

impl LineFormat for Baleen {
    const TICK_PS: u64 = 1000;
    const COLUMNS: &'static str = "block_id io_offset io_size op_time op_name [three to five more]";

    fn is_heading(&self, line: &[u8]) -> bool {
        line.strip_prefix(b"#").unwrap_or(line).trim_ascii().starts_with(b"block_id ")
    }

    /// Its times have a decimal point: other tables of whole numbers fit too, and comments alone.
    fn may_begin(head: &[Vec<u8>]) -> bool {
        head.last().is_some_and(|line| !line.starts_with(b"#") && line.contains(&b'.'))
    }

    fn line(&mut self, line: Line<'_>, rows: &mut Rows) -> Result<(), BadLine> {
        if line.text().starts_with(b"#") {
            rows.report.other_lines += 1;
            return Ok(());
        }
        let mut fields = Fields::<b' '>::new(line);
        let block = fields.digits("block_id")?;
        let offset = fields.integer("io_offset")?;
        let bytes = fields.integer("io_size")?;
        let ns = decimal_seconds(fields.text("op_time")?, "op_time")?;
        let op = match fields.text("op_name")? {
            b"1" | b"2" | b"5" => Some(Op::Read),
            b"3" | b"4" | b"6" => Some(Op::Write),
            b"100" => None,
            other => {
                return Err(Bad::bytes("op_name", other, "1, 2, 5 (gets), 3, 4, 6 (puts) or 100 (unknown)"));
            }
        };
        let mut count = 5;
        while fields.next().is_some() {
            count += 1;
        }
        if !Self::COUNTS.contains(&count) {
            return Err(Bad::new("columns", &count.to_string(), format!("8 to 10: {}", Self::COLUMNS)));
        }
        let Some(op) = op else {
            rows.report.other_lines += 1;
            return Ok(());
        };
        let address = self.places.address(block, BALEEN_BLOCK_BYTES, offset, bytes)?;
        let volume = rows.volumes.numbered(0)?;
        rows.push(ns, address, bytes, op, volume)
    }

    fn is_free(&self) -> bool {
        false
    }
}
