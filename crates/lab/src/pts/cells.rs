//! The definition of each test: its cells (block size and mix), which of them is tracked, and how the device is
//! prepared.

use super::Test;

/// Requests in flight of the tests of IOPS, saturation and throughput.
pub(super) const OUTSTANDING: u32 = 64;
/// One cell of a test: requests of one size and mix for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    pub block_bytes: u64,
    pub read_percent: u32,
    pub is_sequential: bool,
    pub outstanding: u32,
}

impl Cell {
    /// As the text of a workload.
    pub fn workload(&self) -> String {
        let Cell { block_bytes, read_percent, outstanding, .. } = self;
        match self.is_sequential {
            true => {
                let rw = if self.read_percent == 100 { "read" } else { "write" };
                format!("sequential rw={rw} bs={block_bytes}B qd={outstanding}")
            }
            false => format!("uniform rw=randrw read={read_percent}% bs={block_bytes}B qd={outstanding}"),
        }
    }
}

/// How a device is prepared after the purge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Prepared {
    /// Written twice in order, in blocks of this size.
    Sequential(u64),
    /// Written in order, then by random writes of 4 KiB until write amplification is steady.
    Random,
}

/// The rounds of a test.
#[derive(Clone, Debug)]
pub(super) struct Rounds {
    pub prepared: Prepared,
    pub cells: Vec<Cell>,
    /// The cell whose value is tracked.
    pub tracked: usize,
}

const KIB: u64 = 1 << 10;

fn random(blocks: &[u64], mixes: &[u32], outstanding: u32) -> Rounds {
    let cells: Vec<Cell> = mixes
        .iter()
        .flat_map(|&read_percent| {
            let cell =
                move |&block_bytes| Cell { block_bytes, read_percent, is_sequential: false, outstanding };
            blocks.iter().map(cell)
        })
        .collect();
    let is_tracked = |cell: &Cell| cell.read_percent == 0 && cell.block_bytes == 4 * KIB;
    let tracked = cells.iter().position(is_tracked).expect("4 KiB writes are among them");
    Rounds { prepared: Prepared::Random, cells, tracked }
}

/// The rounds of a test, one after the other; none for write saturation, which has no rounds.
pub(super) fn rounds(test: Test) -> Vec<Rounds> {
    match test {
        Test::Iops => {
            let blocks = [1024, 128, 64, 32, 16, 8, 4].map(|kib| kib * KIB);
            let blocks = [&blocks[..], &[512]].concat();
            vec![random(&blocks, &[100, 95, 65, 50, 35, 5, 0], OUTSTANDING)]
        }
        Test::Latency => vec![random(&[8 * KIB, 4 * KIB, 512], &[100, 65, 0], 1)],
        Test::Throughput => [128 * KIB, 1024 * KIB]
            .map(|block_bytes| {
                let cell = |read_percent| Cell {
                    block_bytes,
                    read_percent,
                    is_sequential: true,
                    outstanding: OUTSTANDING,
                };
                Rounds {
                    prepared: Prepared::Sequential(block_bytes),
                    cells: vec![cell(100), cell(0)],
                    tracked: 1,
                }
            })
            .to_vec(),
        Test::WriteSaturation => Vec::new(),
    }
}
