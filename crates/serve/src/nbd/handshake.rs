//! The handshake: from the greeting to the choice of an export.

use super::export::Export;
use super::wire::{self, can, info, option, reply};
use crate::net::incoming::Incoming;
use crate::net::log::Log;
use crate::net::tls::Security;
use crate::net::transport::Transport;
use std::io::{self, Error, ErrorKind};
use std::sync::Arc;

/// Bytes of the longest option that is parsed; longer ones are skipped and refused.
const OPTION_MAX: u32 = 64 << 10;
/// Bytes of the longest option that is skipped; a client that sends more is disconnected.
const SKIP_MAX: u32 = 4 << 20;
/// Options accepted from one client: none needs more, and none may negotiate for ever.
const OPTIONS_MAX: u32 = 1024;

/// The result of the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Agreed {
    /// Index of the chosen export.
    pub export: usize,
    pub structured: bool,
    /// Block status of allocation was negotiated.
    pub allocation: bool,
}

struct Handshake<'a> {
    incoming: &'a mut Incoming,
    transport: &'a Transport,
    exports: &'a [Export],
    security: Option<&'a Security>,
    log: &'a Log,
    no_zeroes: bool,
    structured: bool,
    /// The export for which block status was negotiated.
    allocation: Option<usize>,
    out: Vec<u8>,
}

/// Negotiates until an export is chosen; `None`: the client disconnected in good order.
pub(super) fn shake(
    incoming: &mut Incoming,
    transport: &Transport,
    exports: &[Export],
    security: Option<&Security>,
    log: &Log,
) -> io::Result<Option<Agreed>> {
    let mut greeting = wire::MAGIC.to_be_bytes().to_vec();
    greeting.extend(wire::OPTION_MAGIC.to_be_bytes());
    greeting.extend((wire::FIXED_NEWSTYLE | wire::NO_ZEROES).to_be_bytes());
    transport.write_all(&greeting)?;
    if !incoming.wait(4)? {
        return Ok(None);
    }
    let flags = u32::from_be_bytes(incoming.here(4).try_into().expect("4 bytes"));
    incoming.consume(4);
    if flags & !((wire::FIXED_NEWSTYLE | wire::NO_ZEROES) as u32) != 0 {
        return Err(bad(format!("client flags {flags:#x}")));
    }
    let no_zeroes = flags & wire::NO_ZEROES as u32 != 0;
    let out = Vec::new();
    let (structured, allocation) = (false, None);
    Handshake { incoming, transport, exports, security, log, no_zeroes, structured, allocation, out }.talk()
}

impl Handshake<'_> {
    fn talk(&mut self) -> io::Result<Option<Agreed>> {
        for _ in 0..OPTIONS_MAX {
            if !self.incoming.wait(wire::OPTION_BYTES)? {
                return Ok(None);
            }
            let head = self.incoming.here(wire::OPTION_BYTES).try_into().expect("an option's head");
            let Some((number, bytes)) = wire::option_head(head) else {
                return Err(bad("an option without magic number".into()));
            };
            self.incoming.consume(wire::OPTION_BYTES);
            if bytes > OPTION_MAX {
                self.too_long(number, bytes)?;
                continue;
            }
            let data = self.incoming.need(bytes as usize)?.to_vec();
            self.incoming.consume(bytes as usize);
            let chosen = match number {
                option::STARTTLS if self.starts_tls(&data)? => continue,
                option::EXPORT_NAME if self.is_refused(number) => {
                    return Err(bad("an export is chosen without TLS".into()));
                }
                _ if self.is_refused(number) => {
                    self.reply(number, reply::ERR_TLS_REQD, &[b"this server wants STARTTLS first"]);
                    None
                }
                option::EXPORT_NAME => Some(self.export_name(&data)?),
                option::ABORT => {
                    self.reply(number, reply::ACK, &[]);
                    // The client need not wait for the reply.
                    let _ = self.send();
                    return Ok(None);
                }
                option::INFO | option::GO => self.info(number, &data),
                _ => {
                    self.other(number, &data);
                    None
                }
            };
            self.send()?;
            if let Some(export) = chosen {
                let allocation = self.allocation == Some(export);
                return Ok(Some(Agreed { export, structured: self.structured, allocation }));
            }
        }
        Err(bad(format!("more than {OPTIONS_MAX} options")))
    }

    fn too_long(&mut self, number: u32, bytes: u32) -> io::Result<()> {
        // EXPORT_NAME has no reply for an error.
        if bytes > SKIP_MAX || number == option::EXPORT_NAME {
            return Err(bad(format!("option {number} of {bytes} B")));
        }
        self.incoming.skip(bytes as u64)?;
        let why = if self.is_refused(number) { reply::ERR_TLS_REQD } else { reply::ERR_TOO_BIG };
        self.reply(number, why, &[b"the option is too long, or comes before STARTTLS"]);
        self.send()
    }

    /// True if this option must wait for TLS. The names of exports are protected, too.
    fn is_refused(&self, number: u32) -> bool {
        let required = self.security.is_some_and(|security| security.required);
        required && !self.transport.is_secure() && !matches!(number, option::STARTTLS | option::ABORT)
    }

    /// Answers STARTTLS, and begins TLS if it was accepted. Everything negotiated before may have come from an attacker and
    /// is discarded.
    fn starts_tls(&mut self, data: &[u8]) -> io::Result<bool> {
        let number = option::STARTTLS;
        let Some(security) = self.security.filter(|_| data.is_empty() && !self.transport.is_secure()) else {
            return Ok(false);
        };
        self.reply(number, reply::ACK, &[]);
        self.send()?;
        if self.incoming.len() > 0 {
            return Err(bad("unencrypted bytes after STARTTLS".into()));
        }
        self.transport.secure(Arc::clone(&security.config))?;
        (self.structured, self.allocation) = (false, None);
        Ok(true)
    }

    fn reply(&mut self, number: u32, kind: u32, data: &[&[u8]]) {
        // Clients probe for options this way: no reason to log it.
        if kind & reply::IS_ERROR != 0 && kind != reply::ERR_UNSUP {
            let why = String::from_utf8_lossy(data.first().copied().unwrap_or_default());
            self.log.say(format_args!("nbd: option {number} was refused: {why}"));
        }
        wire::option_reply(&mut self.out, number, kind, data);
    }

    fn send(&mut self) -> io::Result<()> {
        let sent = self.transport.write_all(&self.out);
        self.out.clear();
        sent
    }

    /// The export of a name; the empty name is the first one.
    fn find(&self, name: &[u8]) -> Option<usize> {
        match name {
            b"" => Some(0),
            name => self.exports.iter().position(|export| export.name.as_bytes() == name),
        }
    }

    fn flags(&self) -> u16 {
        let all = can::HAS_FLAGS
            | can::FLUSH
            | can::FUA
            | can::TRIM
            | can::WRITE_ZEROES
            | can::MULTI_CONN
            | can::CACHE
            | can::FAST_ZERO;
        if self.structured { all | can::DF } else { all }
    }

    fn export_name(&mut self, name: &[u8]) -> io::Result<usize> {
        let Some(number) = self.find(name) else {
            return Err(bad(format!("there is no export {:?}", String::from_utf8_lossy(name))));
        };
        self.out.extend(self.exports[number].drive.capacity_bytes().to_be_bytes());
        self.out.extend(self.flags().to_be_bytes());
        if !self.no_zeroes {
            self.out.extend([0; 124]);
        }
        Ok(number)
    }

    fn info(&mut self, number: u32, data: &[u8]) -> Option<usize> {
        let Some((name, wanted)) = wire::info_request(data) else {
            self.reply(number, reply::ERR_INVALID, &[b"malformed"]);
            return None;
        };
        let Some(chosen) = self.find(name) else {
            self.reply(number, reply::ERR_UNKNOWN, &[b"no such export"]);
            return None;
        };
        let export = &self.exports[chosen];
        let (drive, flags) = (&export.drive, self.flags());
        let told = |kind: u16| kind.to_be_bytes();
        let mut out = std::mem::take(&mut self.out);
        let mut tell = |data: &[&[u8]]| wire::option_reply(&mut out, number, reply::INFO, data);
        tell(&[&told(info::EXPORT), &drive.capacity_bytes().to_be_bytes(), &flags.to_be_bytes()]);
        if wanted.contains(&info::NAME) {
            tell(&[&told(info::NAME), export.name.as_bytes()]);
        }
        if wanted.contains(&info::DESCRIPTION) {
            tell(&[&told(info::DESCRIPTION), drive.name().as_bytes()]);
        }
        let best = drive.unit_bytes().next_power_of_two().clamp(4096, wire::PAYLOAD_MAX);
        let sizes = [1, best, wire::PAYLOAD_MAX].map(u32::to_be_bytes).concat();
        tell(&[&told(info::BLOCK_SIZE), &sizes]);
        wire::option_reply(&mut out, number, reply::ACK, &[]);
        self.out = out;
        (number == option::GO).then_some(chosen)
    }

    fn other(&mut self, number: u32, data: &[u8]) {
        match number {
            option::LIST if data.is_empty() => {
                for export in self.exports {
                    let name = export.name.as_bytes();
                    let length = (name.len() as u32).to_be_bytes();
                    wire::option_reply(&mut self.out, number, reply::SERVER, &[&length, name]);
                }
                self.reply(number, reply::ACK, &[]);
            }
            option::STRUCTURED_REPLY if data.is_empty() => {
                self.structured = true;
                self.reply(number, reply::ACK, &[]);
            }
            option::LIST | option::STRUCTURED_REPLY => {
                self.reply(number, reply::ERR_INVALID, &[b"the option carries no data"])
            }
            option::STARTTLS if self.security.is_some() => {
                self.reply(number, reply::ERR_INVALID, &[b"the option carries no data and may be sent once"])
            }
            option::LIST_META_CONTEXT | option::SET_META_CONTEXT => self.contexts(number, data),
            _ => self.reply(number, reply::ERR_UNSUP, &[]),
        }
    }

    fn contexts(&mut self, number: u32, data: &[u8]) {
        let sets = number == option::SET_META_CONTEXT;
        if sets {
            self.allocation = None;
        }
        let parsed = wire::context_request(data).filter(|_| self.structured);
        let Some((name, queries)) = parsed else {
            return self.reply(number, reply::ERR_INVALID, &[b"malformed, or before STRUCTURED_REPLY"]);
        };
        let Some(export) = self.find(name) else {
            return self.reply(number, reply::ERR_UNKNOWN, &[b"no such export"]);
        };
        let lists = !sets && (queries.is_empty() || queries.contains(&&b"base:"[..]));
        if lists || queries.contains(&wire::ALLOCATION) {
            // For LIST the number has no meaning.
            let id = if sets { wire::ALLOCATION_ID } else { 0 };
            self.reply(number, reply::META_CONTEXT, &[&id.to_be_bytes(), wire::ALLOCATION]);
            if sets {
                self.allocation = Some(export);
            }
        }
        self.reply(number, reply::ACK, &[]);
    }
}

fn bad(why: String) -> Error {
    Error::new(ErrorKind::InvalidData, why)
}
