//! Random reads and writes of 4 KiB, one at a time. Every block carries how often it was written, which each read
//! checks against a table in memory (4 bytes a block).

use crate::Result;
use crate::direct::{BLOCK_BYTES, Buffer, DirectFile};
use nvlab_units::Rng;

pub struct RandomIo {
    blocks: u64,
    requests: u64,
    seed: u64,
}

impl RandomIo {
    /// 512 MiB, 1/128 of the talk's 64 GB.
    pub const RECORDED: RandomIo = RandomIo { blocks: 131_072, requests: 10_000, seed: 13 };

    pub fn bytes(&self) -> u64 {
        self.blocks * BLOCK_BYTES as u64
    }

    /// Writes zeros everywhere, so that the run allocates nothing.
    pub fn load(&self, file: &DirectFile) -> Result<String> {
        let zeros = Buffer::new(1 << 20);
        for offset in (0..self.bytes()).step_by(1 << 20) {
            let bytes = (self.bytes() - offset).min(1 << 20) as usize;
            file.write(offset, &zeros.bytes()[..bytes])?;
        }
        file.sync()?;
        Ok(format!("{} bytes of zeros", self.bytes()))
    }

    /// Half reads, half writes, on blocks that are zero at first or were not touched by a run.
    pub fn run(&self, file: &DirectFile) -> Result<String> {
        let (mut rng, mut buffer) = (Rng::new(self.seed), Buffer::new(BLOCK_BYTES));
        let mut written = vec![0u32; self.blocks as usize];
        let mut reads = 0;
        for _ in 0..self.requests {
            let block = rng.below(self.blocks);
            let (offset, version) = (block * BLOCK_BYTES as u64, &mut written[block as usize]);
            if rng.below(2) == 0 {
                file.read(offset, buffer.bytes_mut())?;
                check(block, *version, &buffer)?;
                reads += 1;
            } else {
                *version += 1;
                stamp(block, *version, &mut buffer);
                file.write(offset, buffer.bytes())?;
            }
        }
        file.sync()?;
        Ok(format!("{reads} reads, {} writes", self.requests - reads))
    }
}

/// A block that was written so often; all zeros if never.
fn stamp(block: u64, version: u32, buffer: &mut Buffer) {
    let word = if version == 0 { 0 } else { block << 32 | u64::from(version) };
    buffer.of_mut::<u64>().fill(word);
}

fn check(block: u64, version: u32, found: &Buffer) -> Result<()> {
    let mut expected = Buffer::new(BLOCK_BYTES);
    stamp(block, version, &mut expected);
    if found.bytes() != expected.bytes() {
        return Err(format!("block {block} is not its version {version}").into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    const SMALL: RandomIo = RandomIo { blocks: 16, requests: 400, seed: 1 };

    #[test]
    fn reads_return_what_was_written() {
        let folder = tempfile::tempdir_in(".").unwrap();
        let file = DirectFile::create(&folder.path().join("file"), SMALL.bytes()).unwrap();
        SMALL.load(&file).unwrap();
        SMALL.run(&file).unwrap();
    }

    #[test]
    fn a_foreign_block_is_noticed() {
        let folder = tempfile::tempdir_in(".").unwrap();
        let path = folder.path().join("file");
        let file = DirectFile::create(&path, SMALL.bytes()).unwrap();
        SMALL.load(&file).unwrap();
        // One byte in each block that the run has not written yet.
        let plain = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        for block in 0..SMALL.blocks {
            plain.write_all_at(&[1], block * BLOCK_BYTES as u64 + 100).unwrap();
        }
        plain.sync_all().unwrap();
        assert!(SMALL.run(&file).unwrap_err().to_string().contains("is not its version 0"));
    }
}
