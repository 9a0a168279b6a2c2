//! A data structure of zeros with fields at fixed places, all little-endian.

/// A data structure that a host reads.
#[derive(Debug)]
pub struct Page(Vec<u8>);

impl Page {
    /// All zero.
    pub fn new(bytes: usize) -> Page {
        Page(vec![0; bytes])
    }

    pub fn bytes(mut self, at: usize, bytes: &[u8]) -> Page {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
        self
    }

    pub fn u8(self, at: usize, value: u8) -> Page {
        self.bytes(at, &[value])
    }

    pub fn u16(self, at: usize, value: u16) -> Page {
        self.bytes(at, &value.to_le_bytes())
    }

    pub fn u32(self, at: usize, value: u32) -> Page {
        self.bytes(at, &value.to_le_bytes())
    }

    pub fn u64(self, at: usize, value: u64) -> Page {
        self.bytes(at, &value.to_le_bytes())
    }

    /// A text in a field of this many bytes, shortened or padded with spaces.
    pub fn text(self, at: usize, bytes: usize, text: &str) -> Page {
        let mut field = vec![b' '; bytes];
        let ascii =
            text.bytes().map(|byte| if byte.is_ascii_graphic() || byte == b' ' { byte } else { b'-' });
        field.iter_mut().zip(ascii).for_each(|(to, from)| *to = from);
        self.bytes(at, &field)
    }

    pub fn done(self) -> Vec<u8> {
        self.0
    }
}
