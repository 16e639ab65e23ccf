//! The socket: doing operations, and reading tables.

use std::io::{self, ErrorKind, IoSlice};

use super::batch::{Batch, end_mark};
use super::encode::describe;
use super::error::{Error, Result};
use super::number::{ERROR_TEXT, control, flag};
use crate::netlink::{HEADER, Message, Writer, attributes, messages};
use crate::sys::NetlinkSocket;

/// More than the 32 KiB that the kernel puts into one datagram of a dump.
const BUFFER: usize = 64 << 10;

/// Room for answers: more than all operations of a datagram can cause.
const RECEIVE_BUFFER: libc::c_int = 1 << 20;

/// How many times something that changes meanwhile is read.
const ATTEMPTS: usize = 20;

/// The number of the message that ends a datagram.
const END: u32 = u32::MAX;

/// A connection to the routing of the network namespace in which the opening thread was.
#[derive(Debug)]
pub struct Socket {
    netlink: NetlinkSocket,
    buffer: Box<[u8]>,
}

impl Socket {
    /// Opens a socket in the calling thread's network namespace.
    pub fn open() -> Result<Self> {
        Self::open_protocol(libc::NETLINK_ROUTE)
    }

    /// The same for another part of the kernel that is spoken to in the same way.
    pub(crate) fn open_protocol(protocol: libc::c_int) -> Result<Self> {
        let netlink = NetlinkSocket::open(protocol).map_err(failed("open"))?;
        let options = [
            // Errors have a text, and leave out the message that they are about.
            libc::NETLINK_EXT_ACK,
            libc::NETLINK_CAP_ACK,
            // What a dump asks for is left out or refused, but never ignored.
            libc::NETLINK_GET_STRICT_CHK,
        ];
        for option in options {
            netlink
                .set_option(libc::SOL_NETLINK, option, 1)
                .map_err(failed("set options"))?;
        }
        let set_buffer = |option| netlink.set_option(libc::SOL_SOCKET, option, RECEIVE_BUFFER);
        set_buffer(libc::SO_RCVBUFFORCE)
            .or_else(|_| set_buffer(libc::SO_RCVBUF))
            .map_err(failed("set options"))?;
        Ok(Self {
            netlink,
            buffer: vec![0; BUFFER].into_boxed_slice(),
        })
    }

    /// Does all operations and gives those that the kernel refused, by number. All others were done.
    ///
    /// On an error nobody knows which were.
    pub fn apply(&mut self, batch: &Batch) -> Result<Vec<(usize, Error)>> {
        if let Some(number) = batch.first_oversized() {
            let operation = describe(batch.message(number));
            return Err(Error::TooLong { operation });
        }
        let mut refused = Vec::new();
        let end = end_mark(END);
        for datagram in batch.datagrams() {
            self.discard_answers();
            self.send(&[datagram, end.as_bytes()].map(IoSlice::new))?;
            self.read_refusals(batch, &mut refused)?;
        }
        Ok(refused)
    }

    /// Does all operations that `fill` adds; the error is that of the first that was refused.
    pub fn execute(&mut self, fill: impl FnOnce(&mut Batch)) -> Result<()> {
        let mut batch = Batch::new();
        fill(&mut batch);
        match self.apply(&batch)?.into_iter().next() {
            Some((_, error)) => Err(error),
            None => Ok(()),
        }
    }

    /// Reads a table: `read` makes a value of each message, or skips it.
    pub(crate) fn dump<T>(
        &mut self,
        kind: u16,
        fill: impl Fn(&mut Writer),
        read: impl Fn(&Message<'_>) -> Option<T>,
    ) -> Result<Vec<T>> {
        let mut request = Writer::default();
        request.message(kind, flag::REQUEST | flag::DUMP, 0, fill);
        for _ in 0..ATTEMPTS {
            let mut all = Vec::new();
            if self.dump_once(request.as_bytes(), |m| all.extend(read(m)))? {
                return Ok(all);
            }
        }
        Err(Error::KeptChanging { attempts: ATTEMPTS })
    }

    /// Asks for one object: `read` makes a value of the answer.
    pub(crate) fn get<T>(
        &mut self,
        kind: u16,
        fill: impl Fn(&mut Writer),
        read: impl Fn(&Message<'_>) -> Option<T>,
    ) -> Result<Option<T>> {
        let mut request = Writer::default();
        request.message(kind, flag::REQUEST | flag::ACK, 0, fill);
        let mut found = None;
        match self.dump_once(request.as_bytes(), |m| found = read(m)) {
            Ok(_) => Ok(found),
            Err(error) if error.is_missing() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Sends a request and visits the answers. Gives whether they are of one moment.
    fn dump_once(&mut self, request: &[u8], mut visit: impl FnMut(&Message<'_>)) -> Result<bool> {
        self.discard_answers();
        self.send(&[IoSlice::new(request)])?;
        let mut is_consistent = true;
        loop {
            let received = match self.netlink.receive(&mut self.buffer, true) {
                Ok(received) => received,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(failed("receive")(error)),
            };
            let datagram = self.buffer.get(..received).ok_or(Error::AnswersLost)?;
            for answer in messages(datagram) {
                is_consistent &= answer.flags & flag::DUMP_INTERRUPTED == 0;
                match answer.kind {
                    control::ERROR | control::DONE => {
                        return match refusal(&answer, describe(request)) {
                            None => Ok(is_consistent),
                            Some(error) => Err(error),
                        };
                    }
                    _ => visit(&answer),
                }
            }
        }
    }

    /// Reads the answers to a datagram. The kernel has written all of them when sending returns.
    fn read_refusals(&mut self, batch: &Batch, refused: &mut Vec<(usize, Error)>) -> Result<()> {
        let mut is_ended = false;
        loop {
            let received = match self.netlink.receive(&mut self.buffer, false) {
                Ok(received) => received,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                    return Err(Error::AnswersLost);
                }
                Err(error) => return Err(failed("receive")(error)),
            };
            // An answer that is cut begins like a whole one.
            let datagram = self.buffer.get(..received).unwrap_or(&self.buffer);
            for answer in messages(datagram).filter(|answer| answer.kind == control::ERROR) {
                if answer.sequence == END {
                    is_ended = true;
                    continue;
                }
                let number = usize::try_from(answer.sequence).unwrap_or(usize::MAX);
                let error = refusal(&answer, describe(batch.message(number)));
                refused.extend(error.map(|error| (number, error)));
            }
        }
        if is_ended {
            Ok(())
        } else {
            Err(Error::AnswersLost)
        }
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

    /// Drops what is left of answers that were not read to their end, and the note that some were lost.
    fn discard_answers(&mut self) {
        loop {
            match self.netlink.receive(&mut self.buffer, false) {
                Ok(_) => {}
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {}
                Err(_) => return,
            }
        }
    }
}

/// The error of an answer, none if it is an acknowledgement or the end of a dump.
fn refusal(answer: &Message<'_>, operation: String) -> Option<Error> {
    let (errno, rest) = answer.payload.split_first_chunk()?;
    let errno = i32::from_ne_bytes(*errno)
        .checked_neg()
        .filter(|errno| *errno != 0)?;
    // After the number comes the header of the message that it is about, and then the text.
    let about = if answer.kind == control::DONE {
        0
    } else {
        HEADER
    };
    let text = attributes(rest.get(about..).unwrap_or_default())
        .find(|a| a.kind == ERROR_TEXT)
        .map_or("", |a| a.text());
    Some(Error::Refused {
        operation,
        text: text.to_owned(),
        source: io::Error::from_raw_os_error(errno),
    })
}

pub(super) fn failed(doing: &'static str) -> impl Fn(io::Error) -> Error {
    move |source| Error::Socket { doing, source }
}
