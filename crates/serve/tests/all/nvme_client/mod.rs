//! An NVMe/TCP host that says exactly what a test wants said. It shares nothing with the server: its formats are written from
//! the specification, its CRC-32C is bit by bit.

// Each test program uses some of it.
#![allow(dead_code)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// The name of every discovery subsystem.
pub const DISCOVERY: &str = "nqn.2014-08.org.nvmexpress.discovery";
/// Bytes of a logical block, as the server has it.
pub const BLOCK: usize = 512;

/// CRC-32C by its definition: reflected, polynomial 0x1edc6f41.
pub fn crc(data: &[u8]) -> u32 {
    !data.iter().fold(!0u32, |crc, &byte| {
        (0..8).fold(crc ^ byte as u32, |crc, _| if crc & 1 != 0 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 })
    })
}

/// A completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The first two double words.
    pub result: u64,
    /// Type and code of the status.
    pub status: u16,
    /// The host should not retry.
    pub no_retry: bool,
    /// The command.
    pub id: u16,
    /// Entries of the queue consumed.
    pub head: u16,
}

/// A PDU.
#[derive(Clone, Debug)]
pub struct Pdu {
    /// Its type.
    pub kind: u8,
    /// Its flags.
    pub flags: u8,
    /// With the common header.
    pub header: Vec<u8>,
    /// Its data.
    pub data: Vec<u8>,
}

/// What a connection asks for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wish {
    /// Digests of headers.
    pub header_digest: bool,
    /// Digests of data.
    pub data_digest: bool,
    /// Alignment of data for the host, as ICReq says it.
    pub alignment: u8,
    /// No flow control: reads may have no response.
    pub no_flow_control: bool,
}

/// A connection.
pub struct Host {
    /// The socket.
    pub stream: TcpStream,
    wish: Wish,
    /// The most data of a PDU.
    pub data_max: usize,
    /// The controller.
    pub controller: u16,
    id: u16,
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

/// A command with its opcode, namespace and double words 10 to 15.
pub fn command(opcode: u8, namespace: u32, words: &[u32]) -> [u8; 64] {
    let mut entry = [0; 64];
    (entry[0], entry[1]) = (opcode, 0x40);
    entry[4..8].copy_from_slice(&namespace.to_le_bytes());
    for (place, word) in words.iter().enumerate() {
        entry[40 + 4 * place..44 + 4 * place].copy_from_slice(&word.to_le_bytes());
    }
    entry
}

impl Host {
    /// Connected, nothing was said.
    pub fn raw(address: SocketAddr) -> Host {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream.set_nodelay(true).unwrap();
        Host { stream, wish: Wish::default(), data_max: 0, controller: 0, id: 0 }
    }

    /// After ICReq and ICResp.
    pub fn initialized(address: SocketAddr, wish: Wish) -> Host {
        let mut host = Host::raw(address);
        let mut request = [0; 128];
        (request[2], request[4]) = (128, 128);
        request[10] = wish.alignment;
        request[11] = u8::from(wish.header_digest) | u8::from(wish.data_digest) << 1;
        host.stream.write_all(&request).unwrap();
        let answer = host.pdu();
        assert_eq!((answer.kind, answer.header.len()), (1, 128));
        assert_eq!(answer.header[8..12], [0, 0, 0, request[11]]);
        host.data_max = word(&answer.header, 12) as usize;
        assert!(host.data_max >= 4096);
        host.wish = wish;
        host
    }

    /// The data of Connect.
    pub fn connect_data(nqn: &str, controller: u16) -> Vec<u8> {
        let mut data = vec![0; 1024];
        data[..16].fill(7);
        data[16..18].copy_from_slice(&controller.to_le_bytes());
        data[256..256 + nqn.len()].copy_from_slice(nqn.as_bytes());
        data[512..516].copy_from_slice(b"host");
        data
    }

    /// Connects a queue; the completion tells how that went.
    pub fn connect(&mut self, data: &[u8], queue: u16, size: u16, keep_alive_ms: u32) -> Completion {
        let flags = if self.wish.no_flow_control { 4 << 16 } else { 0 };
        let mut entry = command(0x7f, 1, &[(queue as u32) << 16, size as u32 | flags, keep_alive_ms]);
        entry[4] = 1;
        self.send_inline(entry, data);
        self.completion()
    }

    /// The admin queue of an enabled controller.
    pub fn admin(address: SocketAddr, nqn: &str, wish: Wish, keep_alive_ms: u32) -> Host {
        let mut host = Host::initialized(address, wish);
        let done = host.connect(&Host::connect_data(nqn, 0xffff), 0, 31, keep_alive_ms);
        assert_eq!(done.status, 0, "{done:?}");
        host.controller = done.result as u16;
        assert!(host.controller > 0);
        host.set_property(0x14, 0x0046_0061);
        assert_eq!(host.property(0x1c, false), 1, "ready");
        host
    }

    /// An I/O queue of a controller.
    pub fn io(address: SocketAddr, nqn: &str, wish: Wish, controller: u16, queue: u16) -> Host {
        let mut host = Host::initialized(address, wish);
        let done = host.connect(&Host::connect_data(nqn, controller), queue, 127, 0);
        assert_eq!((done.status, done.result), (0, controller as u64), "{done:?}");
        host
    }

    /// A property.
    pub fn property(&mut self, offset: u32, long: bool) -> u64 {
        let mut entry = command(0x7f, 0, &[u32::from(long), offset]);
        entry[4] = 4;
        let done = self.run(entry);
        assert_eq!(done.status, 0, "{done:?}");
        done.result
    }

    /// Sets a property of 4 bytes.
    pub fn set_property(&mut self, offset: u32, value: u32) {
        let mut entry = command(0x7f, 0, &[0, offset, value]);
        entry[4] = 0;
        assert_eq!(self.run(entry).status, 0);
    }

    /// The next so many bytes.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.stream.read_exact(&mut bytes).unwrap();
        bytes
    }

    /// The next PDU, with its digests checked.
    pub fn pdu(&mut self) -> Pdu {
        let mut header = self.bytes(8);
        let (kind, flags, length, offset) = (header[0], header[1], header[2] as usize, header[3] as usize);
        let all = word(&header, 4) as usize;
        header.extend(self.bytes(length - 8));
        let plain = matches!(kind, 1 | 3);
        assert_eq!(flags & 1 != 0, !plain && self.wish.header_digest);
        let mut read = length;
        if flags & 1 != 0 {
            assert_eq!(self.bytes(4), crc(&header).to_le_bytes());
            read += 4;
        }
        let data = match kind {
            7 => {
                assert!(offset >= read && offset.is_multiple_of(4 * (self.wish.alignment as usize + 1)));
                self.bytes(offset - read);
                let data = self.bytes(word(&header, 16) as usize);
                read = offset + data.len();
                assert_eq!(flags & 2 != 0, self.wish.data_digest);
                if flags & 2 != 0 {
                    assert_eq!(self.bytes(4), crc(&data).to_le_bytes());
                    read += 4;
                }
                data
            }
            3 => {
                read = all;
                self.bytes(all - length)
            }
            _ => Vec::new(),
        };
        assert_eq!(read, all);
        Pdu { kind, flags, header, data }
    }

    /// Sends a PDU; `header` has its own fields set, the common ones are filled in.
    pub fn send(&mut self, kind: u8, more_flags: u8, mut header: Vec<u8>, data: &[u8]) {
        let digest = if self.wish.header_digest { 4 } else { 0 };
        let offset = header.len() + digest;
        let mut length = offset + data.len();
        let mut flags = more_flags | u8::from(self.wish.header_digest);
        if self.wish.data_digest && !data.is_empty() {
            length += 4;
            flags |= 2;
        }
        let head = [kind, flags, header.len() as u8, if data.is_empty() { 0 } else { offset as u8 }];
        header[..4].copy_from_slice(&head);
        header[4..8].copy_from_slice(&(length as u32).to_le_bytes());
        let mut all = header.clone();
        if self.wish.header_digest {
            all.extend(crc(&header).to_le_bytes());
        }
        all.extend(data);
        if flags & 2 != 0 {
            all.extend(crc(data).to_le_bytes());
        }
        self.stream.write_all(&all).unwrap();
    }

    fn send_entry(&mut self, mut entry: [u8; 64], kind: u8, bytes: usize, data: &[u8]) -> u16 {
        self.id = self.id.wrapping_add(1);
        entry[2..4].copy_from_slice(&self.id.to_le_bytes());
        entry[32..36].copy_from_slice(&(bytes as u32).to_le_bytes());
        entry[39] = kind;
        self.send(4, 0, [&[0; 8][..], &entry].concat(), data);
        self.id
    }

    /// Sends a command whose data of so many bytes, if any, the transport moves; returns its number.
    pub fn ask(&mut self, entry: [u8; 64], bytes: usize) -> u16 {
        self.send_entry(entry, 0x5a, bytes, &[])
    }

    /// Sends a command with its data.
    pub fn send_inline(&mut self, entry: [u8; 64], data: &[u8]) -> u16 {
        self.send_entry(entry, 0x01, data.len(), data)
    }

    /// The next PDU, which is a completion.
    pub fn completion(&mut self) -> Completion {
        let pdu = self.pdu();
        assert_eq!(pdu.kind, 5, "{pdu:?}");
        completion(&pdu)
    }

    /// A command without data.
    pub fn run(&mut self, entry: [u8; 64]) -> Completion {
        let id = self.ask(entry, 0);
        let done = self.completion();
        assert_eq!(done.id, id);
        done
    }

    /// A command with data for the host.
    pub fn fetch(&mut self, entry: [u8; 64], bytes: usize) -> Result<Vec<u8>, Completion> {
        let id = self.ask(entry, bytes);
        let pdu = self.pdu();
        if pdu.kind == 5 {
            return Err(completion(&pdu));
        }
        assert_eq!((pdu.kind, pdu.flags & 4, word(&pdu.header, 12)), (7, 4, 0), "{pdu:?}");
        assert_eq!((pdu.header[8..10].to_vec(), pdu.data.len()), (id.to_le_bytes().to_vec(), bytes));
        assert_eq!(pdu.flags & 8 != 0, self.wish.no_flow_control, "without a response or with one");
        if pdu.flags & 8 == 0 {
            let done = self.completion();
            assert_eq!((done.id, done.status), (id, 0));
        }
        Ok(pdu.data)
    }

    /// A command with data from the host, in its capsule or when asked for, in PDUs of at most so many bytes.
    pub fn give(&mut self, entry: [u8; 64], data: &[u8], inline: bool, most: usize) -> Completion {
        if inline {
            let id = self.send_inline(entry, data);
            let done = self.completion();
            assert_eq!(done.id, id);
            return done;
        }
        let id = self.ask(entry, data.len());
        loop {
            let pdu = self.pdu();
            if pdu.kind == 5 {
                let done = completion(&pdu);
                assert_eq!(done.id, id);
                return done;
            }
            assert_eq!((pdu.kind, &pdu.header[8..10]), (9, &id.to_le_bytes()[..]), "{pdu:?}");
            let (offset, bytes) = (word(&pdu.header, 12) as usize, word(&pdu.header, 16) as usize);
            self.data(&pdu, &data[offset..offset + bytes], offset, most);
        }
    }

    /// Sends what an R2T asks for.
    pub fn data(&mut self, ready: &Pdu, data: &[u8], offset: usize, most: usize) {
        let most = most.min(self.data_max);
        let mut at = 0;
        while at < data.len() {
            let here = most.min(data.len() - at);
            let mut header = vec![0; 24];
            header[8..12].copy_from_slice(&ready.header[8..12]);
            header[12..16].copy_from_slice(&((offset + at) as u32).to_le_bytes());
            header[16..20].copy_from_slice(&(here as u32).to_le_bytes());
            let last = at + here == data.len();
            self.send(6, if last { 4 } else { 0 }, header, &data[at..at + here]);
            at += here;
        }
    }

    /// Reads blocks.
    pub fn read(&mut self, namespace: u32, block: u64, count: usize) -> Result<Vec<u8>, Completion> {
        self.fetch(blocks(0x02, namespace, block, count, 0), count * BLOCK)
    }

    /// Writes blocks: in the capsule, if it is allowed to hold so much.
    pub fn write(&mut self, namespace: u32, block: u64, data: &[u8], flags: u32) -> Completion {
        let entry = blocks(0x01, namespace, block, data.len() / BLOCK, flags);
        self.give(entry, data, data.len() <= 128 << 10, usize::MAX)
    }

    /// Whether the server has closed the connection; what it still sent is skipped.
    pub fn is_closed(&mut self) -> bool {
        let mut rest = [0; 4096];
        loop {
            match self.stream.read(&mut rest) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) => return error.kind() == std::io::ErrorKind::ConnectionReset,
            }
        }
    }
}

/// A command on a range of blocks, with flags in double word 12.
pub fn blocks(opcode: u8, namespace: u32, block: u64, count: usize, flags: u32) -> [u8; 64] {
    command(opcode, namespace, &[block as u32, (block >> 32) as u32, (count as u32 - 1) | flags])
}

fn completion(pdu: &Pdu) -> Completion {
    let entry = &pdu.header[8..];
    let status = u16::from_le_bytes([entry[14], entry[15]]) >> 1;
    Completion {
        result: u64::from_le_bytes(entry[..8].try_into().unwrap()),
        status: status & 0x7ff,
        no_retry: status & 0x4000 != 0,
        id: u16::from_le_bytes([entry[12], entry[13]]),
        head: u16::from_le_bytes([entry[8], entry[9]]),
    }
}
