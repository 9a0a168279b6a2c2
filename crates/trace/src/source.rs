//! Bytes of a trace file: hashed as stored on disk, decompressed if their first bytes indicate compression.

use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, Error, ErrorKind, Read, Result, Seek};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use xxhash_rust::xxh3::Xxh3;

const BUFFER_BYTES: usize = 256 << 10;
/// A sparse file may claim any length.
const EXPECTED_BYTES_MAX: usize = 1 << 30;

/// The hash of everything read so far; shared with the reader below a decompressor.
#[derive(Clone, Default)]
pub(crate) struct SourceHash(Arc<AtomicU64>);

impl SourceHash {
    /// xxh3 of the bytes. Complete once the stream has ended.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

pub(crate) struct Source<R> {
    reader: BufReader<Hashing<R>>,
    hash: SourceHash,
}

impl<R: Read> Source<R> {
    pub fn open(reader: R) -> Result<Source<R>> {
        let hash = SourceHash::default();
        let hashing = Hashing { reader, state: Box::new(Xxh3::new()), hash: hash.clone() };
        let mut reader = BufReader::with_capacity(BUFFER_BYTES, hashing);
        reader.fill_buf()?;
        Ok(Source { reader, hash })
    }

    pub fn head(&self) -> &[u8] {
        self.reader.buffer()
    }

    pub fn hash(&self) -> SourceHash {
        self.hash.clone()
    }

    pub fn compression(&self) -> Option<&'static str> {
        match self.head() {
            [0x1f, 0x8b, ..] => Some("gzip"),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some("zstd"),
            _ => None,
        }
    }

    /// The text. One dynamic call per block of 256 KiB.
    pub fn decompressed<'a>(self) -> Result<Box<dyn Read + Send + 'a>>
    where
        R: Send + 'a,
    {
        Ok(match self.compression() {
            Some("gzip") => Box::new(Explained(flate2::bufread::MultiGzDecoder::new(self.reader), "gzip")),
            Some(_) => Box::new(Explained(zstd::Decoder::with_buffer(self.reader)?, "zstd")),
            // Past the buffer: what is read next goes to where the caller wants it.
            None => {
                let head = Cursor::new(self.head().to_vec());
                Box::new(head.chain(self.reader.into_inner()))
            }
        })
    }

    /// All bytes, as stored on disk. `expected_bytes` is their probable number.
    pub fn all(mut self, expected_bytes: usize) -> Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(expected_bytes.min(EXPECTED_BYTES_MAX));
        loop {
            let block = self.reader.fill_buf()?;
            if block.is_empty() {
                return Ok(bytes);
            }
            bytes.extend_from_slice(block);
            let taken = block.len();
            self.reader.consume(taken);
        }
    }
}

/// xxh3 of a file, which is then at its beginning.
pub(crate) fn hash_of(file: &mut File) -> Result<u64> {
    let mut state = Xxh3::new();
    let mut block = vec![0; BUFFER_BYTES];
    loop {
        match file.read(&mut block)? {
            0 => break,
            count => state.update(&block[..count]),
        }
    }
    file.rewind()?;
    Ok(state.digest())
}

struct Hashing<R> {
    reader: R,
    state: Box<Xxh3>,
    hash: SourceHash,
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, into: &mut [u8]) -> Result<usize> {
        let count = self.reader.read(into)?;
        if count > 0 {
            self.state.update(&into[..count]);
        } else {
            self.hash.0.store(self.state.digest(), Ordering::Relaxed);
        }
        Ok(count)
    }
}

/// A readable error for corrupted compressed data.
struct Explained<R>(R, &'static str);

impl<R: Read> Read for Explained<R> {
    fn read(&mut self, into: &mut [u8]) -> Result<usize> {
        self.0.read(into).map_err(|error| match error.kind() {
            ErrorKind::Interrupted => error,
            ErrorKind::UnexpectedEof => Error::new(error.kind(), format!("the {} data ends early", self.1)),
            kind => Error::new(kind, format!("the {} data is damaged: {error}", self.1)),
        })
    }
}
