//! Queueing: how fast packets leave an interface, and where packets go that arrive by one.
//!
//! The socket and its errors are those of [`crate::route`].

use crate::netlink::{Message, Writer, attributes};
use crate::route::{self, Batch, Socket, flag, read_number};

/// The length of `struct tcmsg`.
const HEADER: usize = 20;

const ROOT: u32 = 0xffff_ffff;
const INGRESS: u32 = 0xffff_fff1;
/// The handle that a queue for packets that leave gets, as `tc` writes it: `1:`.
const HANDLE: u32 = 0x1_0000;
/// The handle of what is done to packets that arrive: `ffff:`.
const INGRESS_HANDLE: u32 = 0xffff_0000;

/// The kernel counts a queue's time in units of so many nanoseconds.
const TICK: u64 = 64;

const KIND: u16 = 1;
const OPTIONS: u16 = 2;

mod tbf {
    pub(super) const PARAMETERS: u16 = 1;
    pub(super) const RATE_64: u16 = 4;
    /// `struct tc_tbf_qopt`: two rates of 12 bytes, then three numbers.
    pub(super) const LENGTH: usize = 36;
    pub(super) const RATE: usize = 8;
    pub(super) const LIMIT: usize = 24;
    pub(super) const BUFFER: usize = 28;
}

mod filter {
    /// All protocols, and the first place among filters.
    pub(super) const INFO: u32 = (1 << 16) | (3_u16.to_be() as u32);
    pub(super) const CLASS: u16 = 1;
    pub(super) const SELECTOR: u16 = 5;
    pub(super) const ACTIONS: u16 = 7;
    /// `struct tc_u32_sel` with one key that every packet has: the last match, of one key; nothing compared.
    pub(super) const EVERYTHING: [u8; 32] = {
        let mut selector = [0; 32];
        selector[0] = 1;
        selector[2] = 1;
        selector
    };
    pub(super) const FIRST: u16 = 1;
    pub(super) const ACTION_KIND: u16 = 1;
    pub(super) const ACTION_OPTIONS: u16 = 2;
    pub(super) const MIRRED_PARAMETERS: u16 = 2;
    /// The packet is not looked at any further.
    pub(super) const STOLEN: u32 = 4;
    pub(super) const REDIRECT: u32 = 1;
}

/// A bucket that fills with the right to send: packets leave as fast as it fills, and a full one may be used at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenBucket {
    /// Bytes a second.
    pub rate: u64,
    /// How many bytes may wait.
    pub limit: u32,
    /// How long a full bucket lasts, in the kernel's units; see [`TokenBucket::lasting`].
    pub buffer: u32,
}

/// How packets leave or enter an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Qdisc {
    /// The index of the interface.
    pub link: u32,
    /// Such as `tbf`.
    pub kind: String,
    /// Whether all packets that leave go through it.
    pub is_root: bool,
    /// What it does, if it is a bucket.
    pub bucket: Option<TokenBucket>,
}

impl TokenBucket {
    /// A time in the kernel's units.
    pub fn lasting(microseconds: u32) -> u32 {
        u32::try_from(u64::from(microseconds) * 1000 / TICK).unwrap_or(u32::MAX)
    }

    fn write(&self, out: &mut Writer) {
        let mut parameters = [0; tbf::LENGTH];
        let rate = u32::try_from(self.rate).unwrap_or(u32::MAX);
        for (at, number) in [
            (tbf::RATE, rate),
            (tbf::LIMIT, self.limit),
            (tbf::BUFFER, self.buffer),
        ] {
            parameters[at..at + 4].copy_from_slice(&number.to_ne_bytes());
        }
        out.bytes(tbf::PARAMETERS, &parameters);
        if self.rate > u64::from(u32::MAX) {
            out.bytes(tbf::RATE_64, &self.rate.to_ne_bytes());
        }
    }
}

impl Batch {
    /// Lets packets leave an interface through a bucket, whatever they left it through before.
    pub fn replace_token_bucket(&mut self, link: u32, bucket: &TokenBucket) {
        let flags = flag::CREATE | flag::REPLACE;
        self.push(libc::RTM_NEWQDISC, flags, |out| {
            write_header(out, link, HANDLE, ROOT, 0);
            out.string(KIND, "tbf");
            out.nest(OPTIONS, |out| bucket.write(out));
        });
    }

    /// Lets packets leave an interface as the kernel would have it.
    pub fn delete_root_qdisc(&mut self, link: u32) {
        self.push(libc::RTM_DELQDISC, 0, |out| {
            write_header(out, link, 0, ROOT, 0);
        });
    }

    /// Makes room for what is to be done to packets that arrive.
    pub fn add_ingress(&mut self, link: u32) {
        let flags = flag::CREATE | flag::EXCLUSIVE;
        self.push(libc::RTM_NEWQDISC, flags, |out| {
            write_header(out, link, INGRESS_HANDLE, INGRESS, 0);
            out.string(KIND, "ingress");
        });
    }

    /// Takes away all that is done to packets that arrive.
    pub fn delete_ingress(&mut self, link: u32) {
        self.push(libc::RTM_DELQDISC, 0, |out| {
            write_header(out, link, INGRESS_HANDLE, INGRESS, 0);
        });
    }

    /// Sends every packet that arrives by an interface out through another one. Needs [`Batch::add_ingress`].
    pub fn redirect_arrivals(&mut self, link: u32, to: u32) {
        let flags = flag::CREATE | flag::EXCLUSIVE;
        self.push(libc::RTM_NEWTFILTER, flags, |out| {
            write_header(out, link, 0, INGRESS_HANDLE, filter::INFO);
            out.string(KIND, "u32");
            out.nest(OPTIONS, |out| {
                out.bytes(filter::CLASS, &(HANDLE | 1).to_ne_bytes());
                out.bytes(filter::SELECTOR, &filter::EVERYTHING);
                out.nest(filter::ACTIONS, |out| {
                    out.nest(filter::FIRST, |out| write_redirection(out, to));
                });
            });
        });
    }
}

impl Socket {
    /// How packets leave and enter an interface.
    pub fn qdiscs(&mut self, link: u32) -> route::Result<Vec<Qdisc>> {
        let ask = |out: &mut Writer| write_header(out, 0, 0, 0, 0);
        let all = self.dump(libc::RTM_GETQDISC, ask, read)?;
        Ok(all.into_iter().filter(|qdisc| qdisc.link == link).collect())
    }
}

fn write_header(out: &mut Writer, link: u32, handle: u32, parent: u32, info: u32) {
    out.raw(&[0; 4]);
    for number in [link, handle, parent, info] {
        out.raw(&number.to_ne_bytes());
    }
}

fn write_redirection(out: &mut Writer, to: u32) {
    out.string(filter::ACTION_KIND, "mirred");
    out.nest(filter::ACTION_OPTIONS, |out| {
        let mut parameters = Vec::new();
        // `struct tc_mirred`
        for number in [0, 0, filter::STOLEN, 0, 0, filter::REDIRECT, to] {
            parameters.extend_from_slice(&number.to_ne_bytes());
        }
        out.bytes(filter::MIRRED_PARAMETERS, &parameters);
    });
}

fn read(message: &Message<'_>) -> Option<Qdisc> {
    let kinds = [libc::RTM_NEWQDISC, libc::RTM_DELQDISC];
    if !kinds.contains(&message.kind) {
        return None;
    }
    let (header, rest) = message.payload.split_first_chunk::<HEADER>()?;
    let number = |at: usize| Some(u32::from_ne_bytes(header.get(at..at + 4)?.try_into().ok()?));
    let mut qdisc = Qdisc {
        link: number(4)?,
        kind: String::new(),
        is_root: number(12)? == ROOT,
        bucket: None,
    };
    let find = |kind| attributes(rest).find(|attribute| attribute.kind == kind);
    find(KIND)?.text().clone_into(&mut qdisc.kind);
    if qdisc.kind == "tbf" {
        qdisc.bucket = find(OPTIONS).and_then(|options| {
            let find = |kind| options.nested().find(|attribute| attribute.kind == kind);
            let parameters = find(tbf::PARAMETERS)?.value;
            let number = |at: usize| {
                Some(u32::from_ne_bytes(
                    parameters.get(at..at + 4)?.try_into().ok()?,
                ))
            };
            let large = find(tbf::RATE_64).and_then(|rate| rate.value.try_into().ok());
            Some(TokenBucket {
                rate: large.map_or(u64::from(number(tbf::RATE)?), u64::from_ne_bytes),
                limit: number(tbf::LIMIT)?,
                buffer: number(tbf::BUFFER)?,
            })
        });
    }
    Some(qdisc)
}

/// What a request about queueing asks for.
pub(crate) fn describe(message: &Message<'_>) -> Option<String> {
    let link = read_number(crate::netlink::Attribute {
        kind: 0,
        value: message.payload.get(4..8)?,
    })?;
    let kind = attributes(message.payload.get(HEADER..)?).find(|attribute| attribute.kind == KIND);
    let kind = kind.map_or("a qdisc", |kind| kind.text());
    Some(match message.kind {
        libc::RTM_NEWQDISC => format!("set the qdisc `{kind}` of interface {link}"),
        libc::RTM_DELQDISC => format!("delete {kind} of interface {link}"),
        libc::RTM_GETQDISC => "list qdiscs".to_owned(),
        libc::RTM_NEWTFILTER => format!("add a filter `{kind}` to interface {link}"),
        _ => return None,
    })
}
