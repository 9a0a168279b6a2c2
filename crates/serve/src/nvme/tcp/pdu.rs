//! Formats of PDUs, all little-endian, and which of them are wrong.
//!
//! ```text
//!   common header (8 bytes) | rest of the header | header digest | padding | data | data digest
//! ```
//!
//! The common header has the type, flags, the length of the header, the offset of the data and the length of all.

use crate::answers::Outgoing;
use crate::nvme::command::DATA_BYTES_MAX;
use nvlab_units::checksum::crc32c;

/// Bytes of the common header.
pub const HEAD_BYTES: usize = 8;
/// Bytes of ICReq and ICResp.
pub const INITIALIZE_BYTES: usize = 128;
/// Bytes of the header of a command capsule; the command follows the common header.
pub const CAPSULE_BYTES: usize = 72;
/// Bytes of the headers of responses, data, R2T and termination.
pub const SHORT_BYTES: usize = 24;
/// Bytes of a digest.
pub const DIGEST_BYTES: usize = 4;
/// The most of a faulty header that is sent back.
const FAULTY_BYTES_MAX: usize = 128;
/// The most padding before data: the offset is a byte.
const PADDING_MAX: usize = 128;

/// The most data in a command capsule: as much as is taken at once. Announced in units of 16 bytes, with the command.
pub const IN_CAPSULE_BYTES: u32 = 128 << 10;
/// The same for fabrics and admin commands, fixed by the specification.
pub const ADMIN_IN_CAPSULE_BYTES: u32 = 8192;

/// Types.
pub mod kind {
    pub const INITIALIZE_REQUEST: u8 = 0x00;
    pub const INITIALIZE_RESPONSE: u8 = 0x01;
    pub const TERMINATE_BY_HOST: u8 = 0x02;
    pub const TERMINATE_BY_CONTROLLER: u8 = 0x03;
    pub const COMMAND: u8 = 0x04;
    pub const RESPONSE: u8 = 0x05;
    pub const DATA_FROM_HOST: u8 = 0x06;
    pub const DATA_TO_HOST: u8 = 0x07;
    pub const READY_TO_TRANSFER: u8 = 0x09;
}

/// Flags.
pub mod flag {
    pub const HEADER_DIGEST: u8 = 1;
    pub const DATA_DIGEST: u8 = 1 << 1;
    /// The last data of a command.
    pub const LAST: u8 = 1 << 2;
    /// The command succeeded, and there is no response.
    pub const SUCCESS: u8 = 1 << 3;
}

/// Fatal errors, as in a termination request.
pub mod fatal {
    pub const HEADER_FIELD: u16 = 1;
    pub const SEQUENCE: u16 = 2;
    pub const HEADER_DIGEST: u16 = 3;
    pub const OUT_OF_RANGE: u16 = 4;
    pub const LIMIT: u16 = 5;
    pub const PARAMETER: u16 = 6;
}

/// Which digests a connection has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digests {
    pub header: bool,
    pub data: bool,
}

/// Why a connection ends: one of [`fatal`], with the offset of the field or the digest received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fatal {
    pub status: u16,
    pub information: u32,
}

fn fatal(status: u16, information: u32) -> Fatal {
    Fatal { status, information }
}

/// A common header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    pub kind: u8,
    pub flags: u8,
    pub header_bytes: u8,
    pub data_offset: u8,
    pub bytes: u32,
}

/// The parts of a PDU after its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub header_bytes: usize,
    /// Between header or its digest and data.
    pub padding: usize,
    pub data: u32,
}

impl Head {
    pub fn parse(bytes: &[u8]) -> Head {
        let length = u32::from_le_bytes(bytes[4..8].try_into().expect("4 bytes"));
        Head { kind: bytes[0], flags: bytes[1], header_bytes: bytes[2], data_offset: bytes[3], bytes: length }
    }

    /// Checks a PDU from a host that is connected; `first`: it must be an ICReq.
    pub fn check(&self, digests: Digests, first: bool) -> Result<Shape, Fatal> {
        let (header_bytes, data_max) = match self.kind {
            kind::INITIALIZE_REQUEST if first => (INITIALIZE_BYTES, 0),
            kind::TERMINATE_BY_HOST => (SHORT_BYTES, FAULTY_BYTES_MAX as u32),
            kind::COMMAND if !first => (CAPSULE_BYTES, IN_CAPSULE_BYTES),
            // Linux before 5.17 sends all the data of a command in one PDU, whatever it is told.
            kind::DATA_FROM_HOST if !first => (SHORT_BYTES, DATA_BYTES_MAX),
            kind::INITIALIZE_REQUEST | kind::COMMAND | kind::DATA_FROM_HOST => {
                return Err(fatal(fatal::SEQUENCE, 0));
            }
            _ => return Err(fatal(fatal::HEADER_FIELD, 0)),
        };
        if self.header_bytes as usize != header_bytes {
            return Err(fatal(fatal::HEADER_FIELD, 2));
        }
        match self.kind {
            kind::COMMAND | kind::DATA_FROM_HOST => self.shape(header_bytes, data_max, digests),
            // These have neither digests nor an offset.
            _ => match (self.bytes as usize).checked_sub(header_bytes) {
                Some(data) if data <= data_max as usize => {
                    Ok(Shape { header_bytes, padding: 0, data: data as u32 })
                }
                _ => Err(fatal(fatal::HEADER_FIELD, 4)),
            },
        }
    }

    fn shape(&self, header_bytes: usize, data_max: u32, digests: Digests) -> Result<Shape, Fatal> {
        let is_data = self.kind == kind::DATA_FROM_HOST;
        let others = if is_data { flag::LAST } else { 0 };
        let begin = header_bytes + if digests.header { DIGEST_BYTES } else { 0 };
        let Some(rest) = (self.bytes as usize).checked_sub(begin) else {
            return Err(fatal(fatal::HEADER_FIELD, 4));
        };
        let has_digest = digests.data && rest > 0;
        let flags = if digests.header { flag::HEADER_DIGEST } else { 0 };
        // Without data the flag of its digest means nothing.
        let data_flag = if rest > 0 { flag::DATA_DIGEST } else { 0 };
        let expected = flags | if has_digest { flag::DATA_DIGEST } else { 0 };
        if self.flags & !others & (flag::HEADER_DIGEST | data_flag) != expected {
            return Err(fatal(fatal::HEADER_FIELD, 1));
        }
        if rest == 0 {
            return match is_data {
                true => Err(fatal(fatal::HEADER_FIELD, 4)),
                false => Ok(Shape { header_bytes, padding: 0, data: 0 }),
            };
        }
        let padding = (self.data_offset as usize).checked_sub(begin);
        let padding = padding.filter(|&padding| padding < PADDING_MAX && padding.is_multiple_of(4));
        let Some(padding) = padding else { return Err(fatal(fatal::HEADER_FIELD, 3)) };
        let digest = if has_digest { DIGEST_BYTES } else { 0 };
        match rest.checked_sub(padding + digest) {
            Some(data) if data > 0 && data <= data_max as usize => {
                Ok(Shape { header_bytes, padding, data: data as u32 })
            }
            Some(data) if data > 0 => Err(fatal(fatal::LIMIT, 4)),
            _ => Err(fatal(fatal::HEADER_FIELD, 4)),
        }
    }
}

/// What an ICReq asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Initialize {
    pub digests: Digests,
    /// Data for the host start at a multiple of this.
    pub alignment: usize,
}

impl Initialize {
    /// From the whole PDU.
    pub fn parse(bytes: &[u8]) -> Result<Initialize, Fatal> {
        let (format, alignment, digests) = (u16::from_le_bytes([bytes[8], bytes[9]]), bytes[10], bytes[11]);
        match () {
            () if format != 0 => Err(fatal(fatal::PARAMETER, 8)),
            () if alignment > 31 => Err(fatal(fatal::HEADER_FIELD, 10)),
            () => Ok(Initialize {
                digests: Digests { header: digests & 1 != 0, data: digests & 2 != 0 },
                alignment: (alignment as usize + 1) * 4,
            }),
        }
    }

    /// The ICResp: the digests as asked, no alignment of data from the host.
    pub fn response(&self) -> [u8; INITIALIZE_BYTES] {
        let mut bytes = [0; INITIALIZE_BYTES];
        head(&mut bytes, kind::INITIALIZE_RESPONSE, 0, 0, INITIALIZE_BYTES);
        bytes[11] = u8::from(self.digests.header) | u8::from(self.digests.data) << 1;
        bytes[12..16].copy_from_slice(&DATA_BYTES_MAX.to_le_bytes());
        bytes
    }
}

/// The fields of data from a host: command, transfer tag, offset and length.
pub fn data_from_host(header: &[u8]) -> (u16, u16, u32, u32) {
    let u16_at = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
    let u32_at = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("4 bytes"));
    (u16_at(8), u16_at(10), u32_at(12), u32_at(16))
}

fn head(bytes: &mut [u8], kind: u8, flags: u8, data_offset: usize, length: usize) {
    let header_bytes = bytes.len() as u8;
    bytes[..4].copy_from_slice(&[kind, flags, header_bytes, data_offset as u8]);
    bytes[4..8].copy_from_slice(&(length as u32).to_le_bytes());
}

/// Appends a PDU without data.
fn short(out: &mut Outgoing, digests: Digests, kind: u8, fields: &[u8; 16]) {
    let mut bytes = [0; SHORT_BYTES];
    let (flags, digest) = if digests.header { (flag::HEADER_DIGEST, DIGEST_BYTES) } else { (0, 0) };
    head(&mut bytes, kind, flags, 0, SHORT_BYTES + digest);
    bytes[8..].copy_from_slice(fields);
    out.push(&bytes);
    if digests.header {
        out.push(&crc32c(&[&bytes]).to_le_bytes());
    }
}

/// Appends a completion.
pub fn response(out: &mut Outgoing, digests: Digests, entry: &[u8; 16]) {
    short(out, digests, kind::RESPONSE, entry);
}

/// Appends an R2T for all the data of a command.
pub fn ready_to_transfer(out: &mut Outgoing, digests: Digests, command: u16, tag: u16, bytes: u32) {
    let mut fields = [0; 16];
    fields[..2].copy_from_slice(&command.to_le_bytes());
    fields[2..4].copy_from_slice(&tag.to_le_bytes());
    fields[8..12].copy_from_slice(&bytes.to_le_bytes());
    short(out, digests, kind::READY_TO_TRANSFER, &fields);
}

/// Appends the header of all the data of a command for the host, up to the data. `success`: no response follows.
pub fn data_to_host(out: &mut Outgoing, agreed: &Initialize, command: u16, bytes: u32, success: bool) {
    let Initialize { digests, alignment } = *agreed;
    let begin = SHORT_BYTES + if digests.header { DIGEST_BYTES } else { 0 };
    let offset = begin.next_multiple_of(alignment);
    let tail = if digests.data { DIGEST_BYTES } else { 0 };
    let mut flags = flag::LAST;
    flags |= if digests.header { flag::HEADER_DIGEST } else { 0 };
    flags |= if digests.data { flag::DATA_DIGEST } else { 0 };
    flags |= if success { flag::SUCCESS } else { 0 };
    let mut header = [0; SHORT_BYTES];
    head(&mut header, kind::DATA_TO_HOST, flags, offset, offset + bytes as usize + tail);
    header[8..10].copy_from_slice(&command.to_le_bytes());
    header[16..20].copy_from_slice(&bytes.to_le_bytes());
    out.push(&header);
    if digests.header {
        out.push(&crc32c(&[&header]).to_le_bytes());
    }
    out.reserve(offset - begin).fill(0);
}

/// Appends a termination request with the header that was wrong.
pub fn terminate(out: &mut Outgoing, why: Fatal, faulty: &[u8]) {
    let faulty = &faulty[..faulty.len().min(FAULTY_BYTES_MAX)];
    let mut header = [0; SHORT_BYTES];
    head(&mut header, kind::TERMINATE_BY_CONTROLLER, 0, 0, SHORT_BYTES + faulty.len());
    header[8..10].copy_from_slice(&why.status.to_le_bytes());
    header[10..14].copy_from_slice(&why.information.to_le_bytes());
    out.push(&header);
    out.push(faulty);
}

#[cfg(test)]
mod tests {
    use super::*;
    use nvlab_units::Rng;

    fn command(bytes: u32, data_offset: u8) -> Head {
        Head { kind: kind::COMMAND, flags: 0, header_bytes: CAPSULE_BYTES as u8, data_offset, bytes }
    }

    #[test]
    fn lengths_that_do_not_fit_are_refused() {
        let none = Digests::default();
        let fits = |head: Head| head.check(none, false).map(|shape| (shape.padding, shape.data));
        assert_eq!(fits(command(72, 0)), Ok((0, 0)));
        assert_eq!(fits(command(72 + 512, 72)), Ok((0, 512)));
        assert_eq!(fits(command(80 + 512, 80)), Ok((8, 512)));
        assert_eq!(fits(command(72 + IN_CAPSULE_BYTES, 72)), Ok((0, IN_CAPSULE_BYTES)));
        for (head, why) in [
            (command(71, 0), fatal(fatal::HEADER_FIELD, 4)),
            (command(72 + 512, 73), fatal(fatal::HEADER_FIELD, 3)),
            (command(72 + 512, 0), fatal(fatal::HEADER_FIELD, 3)),
            (command(80, 80), fatal(fatal::HEADER_FIELD, 4)),
            (command(73 + IN_CAPSULE_BYTES, 72), fatal(fatal::LIMIT, 4)),
            (command(u32::MAX, 72), fatal(fatal::LIMIT, 4)),
            (Head { flags: 1, ..command(72, 0) }, fatal(fatal::HEADER_FIELD, 1)),
            (Head { header_bytes: 71, ..command(72, 0) }, fatal(fatal::HEADER_FIELD, 2)),
            (Head { kind: kind::RESPONSE, ..command(72, 0) }, fatal(fatal::HEADER_FIELD, 0)),
            (Head { kind: kind::INITIALIZE_REQUEST, ..command(128, 0) }, fatal(fatal::SEQUENCE, 0)),
        ] {
            assert_eq!(head.check(none, false), Err(why), "{head:?}");
        }
    }

    /// Whatever comes, nothing panics, and the parts are the whole.
    #[test]
    fn random_heads_are_refused_or_add_up() {
        let (mut rng, mut good) = (Rng::new(3), 0);
        for _ in 0..300_000 {
            let digests = Digests { header: rng.chance(0.5), data: rng.chance(0.5) };
            let kinds = [0, 2, 4, 6, rng.below(16) as u8];
            let headers = [24, 72, 128, rng.bits() as u8];
            let head = Head {
                kind: kinds[rng.below(5) as usize],
                flags: rng.below(8) as u8,
                header_bytes: headers[rng.below(4) as usize],
                data_offset: [0, 24, 28, 72, 76, rng.bits() as u8][rng.below(6) as usize],
                bytes: [rng.below(256), rng.below(1 << 21), rng.bits()][rng.below(3) as usize] as u32,
            };
            if let Ok(shape) = head.check(digests, rng.chance(0.2)) {
                good += 1;
                let rest = head.bytes as u64 - shape.header_bytes as u64 - shape.data as u64;
                assert!(rest <= 8 + PADDING_MAX as u64, "{head:?} {shape:?}");
            }
        }
        assert!(good > 1000, "{good}");
    }
}
