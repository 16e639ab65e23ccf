//! The socket: sending transactions and reading what became of them.

use std::io::{self, ErrorKind, IoSlice};

use rustix::net::netlink::SocketAddrNetlink;

use super::describe::{FAMILY_HEADER, describe};
use super::error::{Error, Result, Subject};
use super::number::{extended, flag, message, rule};
use super::transaction::{Operation, Transaction};
use crate::netlink::{HEADER, Message, Writer, attributes, messages};
use crate::sys::NetlinkSocket;

/// More than the 32 KiB that the kernel puts into one datagram of a dump.
const BUFFER: usize = 64 << 10;

/// The number of the message that opens a batch. Errors of the batch as a whole have it.
const BATCH: u32 = u32::MAX;

/// How many times something that changes meanwhile is read.
pub(super) const ATTEMPTS: usize = 20;

/// Where answers to rules are awaited, the receive buffer is this many times as large as the transaction: they are a
/// little longer than the rules, and the kernel counts the memory behind them.
const ANSWERS: usize = 4;

/// A connection to the nftables of the network namespace in which the opening thread was.
///
/// Meant to be kept open: closing it waits for the kernel to free what was deleted through it.
#[derive(Debug)]
pub struct Socket {
    netlink: NetlinkSocket,
    buffer: Box<[u8]>,
    send_buffer: usize,
    receive_buffer: usize,
}

/// What came of a transaction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Committed {
    /// The handles of new rules, in order, if the transaction asks for them.
    pub handles: Vec<(Operation, u64)>,
}

impl Socket {
    /// Opens a socket in the calling thread's network namespace.
    pub fn open() -> Result<Self> {
        let netlink = NetlinkSocket::open(libc::NETLINK_NETFILTER).map_err(failed("open"))?;
        // Errors then have a text, and leave out the message that they are about, which may be long.
        for option in [libc::NETLINK_EXT_ACK, libc::NETLINK_CAP_ACK] {
            netlink
                .set_option(libc::SOL_NETLINK, option, 1)
                .map_err(failed("set options"))?;
        }
        Ok(Self {
            netlink,
            buffer: vec![0; BUFFER].into_boxed_slice(),
            send_buffer: 0,
            receive_buffer: 0,
        })
    }

    /// The number that the kernel knows it by. It has none before the first transaction or list.
    pub fn port(&self) -> io::Result<u32> {
        let name = rustix::net::getsockname(&self.netlink)?;
        let name = SocketAddrNetlink::try_from(name)?;
        Ok(name.pid())
    }

    /// Does all that the transaction says, or nothing.
    pub fn commit(&mut self, transaction: &Transaction) -> Result<Committed> {
        if transaction.is_empty() {
            return Ok(Committed::default());
        }
        if let Some(number) = transaction.oversized() {
            return Err(Error::TooLong {
                operation: transaction.describe(number),
                subject: transaction.subject(number),
            });
        }
        self.make_room(transaction);
        self.discard_answers();
        self.send_batch(transaction)?;
        self.read_outcome(transaction)
    }

    /// Reads something that takes several answers of the kernel, none of which may be of another time than the others.
    ///
    /// `read` tells whether things changed meanwhile; then it begins again, with a new `T`. The kernel's own mark on such
    /// answers is not enough: it counts a commit before it takes the old objects off its lists, and a dump that goes on from
    /// a position in a list may then leave out new ones. Hence the commits that were counted before are waited for, and none
    /// may be counted until the end.
    pub(super) fn read_at_once<T: Default>(
        &mut self,
        mut read: impl FnMut(&mut Self, &mut T) -> Result<bool>,
    ) -> Result<T> {
        for _ in 0..ATTEMPTS {
            let mut result = T::default();
            let before = self.generation()?;
            self.wait_for_commits()?;
            let changed = read(self, &mut result)?;
            if !changed && self.generation()? == before {
                return Ok(result);
            }
        }
        Err(Error::KeptChanging { attempts: ATTEMPTS })
    }

    /// Sends a request for a dump and passes each message of the answer to `visit`.
    pub(super) fn dump<T: Default>(
        &mut self,
        kind: u16,
        family: u8,
        fill: impl Fn(&mut Writer),
        mut visit: impl FnMut(&mut T, &Message<'_>),
    ) -> Result<T> {
        let request = request(kind, flag::DUMP, family, fill);
        self.read_at_once(|socket, result| socket.ask(&request, |answer| visit(result, answer)))
    }

    /// Sends a request, and passes the messages of the answer to `visit` until it is complete.
    ///
    /// Tells whether things changed meanwhile.
    pub(super) fn ask(
        &mut self,
        request: &[u8],
        mut visit: impl FnMut(&Message<'_>),
    ) -> Result<bool> {
        self.discard_answers();
        self.send(&[IoSlice::new(request)])?;
        let mut changed = false;
        loop {
            let received = match self.netlink.receive(&mut self.buffer, true) {
                Ok(received) => received,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                    changed = true;
                    continue;
                }
                Err(error) => return Err(failed("receive")(error)),
            };
            let datagram = self.buffer.get(..received).ok_or(Error::AnswersLost)?;
            for answer in messages(datagram) {
                changed |= answer.flags & flag::DUMP_INTERRUPTED != 0;
                match answer.kind {
                    message::ERROR | message::DONE => {
                        return match refusal(&answer) {
                            None => Ok(changed),
                            Some(refusal) => {
                                Err(refusal.into_error(describe_request(request), None, 0))
                            }
                        };
                    }
                    _ => visit(&answer),
                }
            }
        }
    }

    /// Returns when no commit is under way: an empty one has to wait for the others.
    fn wait_for_commits(&self) -> Result<()> {
        let (begin, end) = (
            batch_mark(message::BATCH_BEGIN),
            batch_mark(message::BATCH_END),
        );
        self.send(&[begin.as_bytes(), end.as_bytes()].map(IoSlice::new))
    }

    /// Makes the socket's buffers large enough, if it may.
    fn make_room(&mut self, transaction: &Transaction) {
        let bytes = transaction.bytes();
        if bytes * 2 > self.send_buffer {
            self.send_buffer = bytes * 2;
            self.set_buffer(libc::SO_SNDBUFFORCE, libc::SO_SNDBUF, self.send_buffer);
        }
        if transaction.wants_handles() && bytes * ANSWERS > self.receive_buffer {
            self.receive_buffer = bytes * ANSWERS;
            self.set_buffer(libc::SO_RCVBUFFORCE, libc::SO_RCVBUF, self.receive_buffer);
        }
    }

    /// Sets the size of a buffer beyond what is allowed to all, or else as far as that. Where it is too small nevertheless,
    /// sending or receiving says so.
    fn set_buffer(&self, force: libc::c_int, ask: libc::c_int, bytes: usize) {
        // The kernel doubles the number.
        let bytes = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX / 2);
        let set = |option| self.netlink.set_option(libc::SOL_SOCKET, option, bytes);
        if set(force).is_err() {
            let _ = set(ask);
        }
    }

    /// Sends the transaction between the marks of a batch, asking for an answer to its last message.
    fn send_batch(&self, transaction: &Transaction) -> Result<()> {
        let (all, last) = transaction.encoded();
        let (before, rest) = all.split_at(last);
        let Some((header, after)) = rest.split_first_chunk::<HEADER>() else {
            return Ok(());
        };
        let mut header = *header;
        // The flags' lower byte: messages are in the order of the machine.
        header[if cfg!(target_endian = "little") { 6 } else { 7 }] |= flag::ACK.to_be_bytes()[1];
        let (begin, end) = (
            batch_mark(message::BATCH_BEGIN),
            batch_mark(message::BATCH_END),
        );
        self.send(&[begin.as_bytes(), before, &header, after, end.as_bytes()].map(IoSlice::new))
    }

    fn send(&self, parts: &[IoSlice<'_>]) -> Result<()> {
        loop {
            match self.netlink.send(parts) {
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(failed("send")(error)),
            }
        }
    }

    /// Reads the answers to a transaction. The kernel has written all of them when sending returns.
    fn read_outcome(&mut self, transaction: &Transaction) -> Result<Committed> {
        let mut outcome = Outcome::default();
        loop {
            match self.netlink.receive(&mut self.buffer, false) {
                Ok(received) => {
                    // An answer that is cut begins like a whole one.
                    let datagram = self.buffer.get(..received).unwrap_or(&self.buffer);
                    messages(datagram).for_each(|answer| outcome.read(&answer));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                    outcome.is_incomplete = true;
                }
                Err(error) => return Err(failed("receive")(error)),
            }
        }
        outcome.conclude(transaction)
    }

    /// Drops what is left of answers that were not read to their end.
    fn discard_answers(&mut self) {
        while self.netlink.receive(&mut self.buffer, false).is_ok() {}
    }
}

/// What the answers to a transaction say.
#[derive(Default)]
struct Outcome {
    is_acknowledged: bool,
    /// Answers were lost for want of room.
    is_incomplete: bool,
    refusal: Option<Refusal>,
    others: usize,
    handles: Vec<(Operation, u64)>,
}

impl Outcome {
    fn read(&mut self, answer: &Message<'_>) {
        match answer.kind {
            message::ERROR => match refusal(answer) {
                None => self.is_acknowledged = true,
                Some(_) if self.refusal.is_some() => self.others += 1,
                Some(refusal) => self.refusal = Some(refusal),
            },
            message::NEW_RULE => {
                let attributes = answer.payload.get(FAMILY_HEADER..).map(attributes);
                let handle = attributes
                    .into_iter()
                    .flatten()
                    .find(|a| a.kind == rule::HANDLE);
                if let (Some(handle), Ok(number)) = (handle, usize::try_from(answer.sequence)) {
                    self.handles.push((Operation(number), handle.u64()));
                }
            }
            _ => {}
        }
    }

    fn conclude(self, transaction: &Transaction) -> Result<Committed> {
        if let Some(refusal) = self.refusal {
            let number = usize::try_from(refusal.sequence).unwrap_or(usize::MAX);
            let subject = transaction.subject(number);
            return Err(refusal.into_error(transaction.describe(number), subject, self.others));
        }
        // The acknowledgement alone tells that it was done; where it was lost, or handles were, nobody knows them.
        if !self.is_acknowledged || self.is_incomplete {
            return Err(Error::AnswersLost);
        }
        Ok(Committed {
            handles: self.handles,
        })
    }
}

/// An error that the kernel answers with.
struct Refusal {
    /// The number of the message that is refused.
    sequence: u32,
    errno: i32,
    text: String,
}

impl Refusal {
    fn into_error(self, operation: String, subject: Option<Subject>, others: usize) -> Error {
        Error::Refused {
            operation,
            subject,
            text: self.text,
            others,
            source: io::Error::from_raw_os_error(self.errno),
        }
    }
}

/// The error of an answer, none if it is an acknowledgement or the end of a dump.
fn refusal(answer: &Message<'_>) -> Option<Refusal> {
    let (errno, rest) = answer.payload.split_first_chunk()?;
    let errno = i32::from_ne_bytes(*errno)
        .checked_neg()
        .filter(|errno| *errno != 0)?;
    // After the number comes the header of the message that it is about, and then the text.
    let about = if answer.kind == message::DONE {
        0
    } else {
        HEADER
    };
    let text = attributes(rest.get(about..).unwrap_or_default())
        .find(|a| a.kind == extended::TEXT)
        .map_or("", |a| a.text());
    Some(Refusal {
        sequence: answer.sequence,
        errno,
        text: text.to_owned(),
    })
}

/// A message that asks for something.
pub(super) fn request(kind: u16, flags: u16, family: u8, fill: impl Fn(&mut Writer)) -> Vec<u8> {
    let mut out = Writer::default();
    out.message(kind, flag::REQUEST | flags, 0, |out| {
        out.raw(&[family, 0, 0, 0]);
        fill(out);
    });
    out.into_bytes()
}

/// The message that opens or closes a batch of messages for nftables.
fn batch_mark(kind: u16) -> Writer {
    let mut out = Writer::default();
    let [subsystem, _] = message::SUBSYSTEM.to_be_bytes();
    out.message(kind, flag::REQUEST, BATCH, |out| {
        out.raw(&[0, 0, 0, subsystem]);
    });
    out
}

fn describe_request(request: &[u8]) -> String {
    messages(request)
        .next()
        .map_or_else(String::new, |asked| describe(&asked))
}

fn failed(doing: &'static str) -> impl Fn(io::Error) -> Error {
    move |source| Error::Socket { doing, source }
}
