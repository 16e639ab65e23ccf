//! Frames: how messages are told apart.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Four bytes of length, eight of number, one of mark.
const HEAD_BYTES: usize = 13;

/// What a body may take before it has arrived. More is taken as it comes: a length is only a claim.
const FIRST_BYTES: usize = 64 << 10;

/// What stands before the content of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// How many bytes follow.
    pub length: usize,
    /// Which request the frame belongs to.
    pub id: u64,
    /// Whether more frames of the same answer follow.
    pub has_more: bool,
}

/// Why bytes are no frame, or its content is no message.
#[derive(Debug, thiserror::Error)]
pub enum Malformed {
    /// It is longer than the receiver takes.
    #[error("a frame of {length} bytes is longer than the {limit} that are taken")]
    TooLong { length: usize, limit: usize },
    /// The mark is none.
    #[error("{0} is not the mark of a frame; it must be 0 or 1")]
    UnknownMark(u8),
    /// The content is not what it should be.
    #[error("the content of a frame is no message: {0}")]
    Content(#[from] serde_json::Error),
    /// An object in the content cannot be read.
    #[error("an object in a frame cannot be read: {0}")]
    Object(String),
}

/// A frame, ready to be sent.
pub(super) type Encoded = Vec<u8>;

// === impl Head ===

impl Head {
    /// Reads a head; refuses lengths above the limit.
    pub fn decode(bytes: &[u8; HEAD_BYTES], limit: usize) -> Result<Self, Malformed> {
        let [l0, l1, l2, l3, id @ .., mark] = *bytes;
        let length = u32::from_be_bytes([l0, l1, l2, l3]) as usize;
        if length > limit {
            return Err(Malformed::TooLong { length, limit });
        }
        if mark > 1 {
            return Err(Malformed::UnknownMark(mark));
        }
        Ok(Self {
            length,
            id: u64::from_be_bytes(id),
            has_more: mark == 1,
        })
    }
}

/// Makes a frame of a message. The error tells how long it would be, if that is above the limit.
pub(super) fn encode(
    id: u64,
    has_more: bool,
    message: &impl serde::Serialize,
    limit: usize,
) -> Result<Encoded, Malformed> {
    let mut bytes = vec![0; HEAD_BYTES];
    serde_json::to_writer(&mut bytes, message)?;
    let length = bytes.len() - HEAD_BYTES;
    let too_long = Malformed::TooLong { length, limit };
    let number = u32::try_from(length).map_err(|_| Malformed::TooLong { length, limit })?;
    if length > limit {
        return Err(too_long);
    }
    bytes[..4].copy_from_slice(&number.to_be_bytes());
    bytes[12] = u8::from(has_more);
    set_id(&mut bytes, id);
    Ok(bytes)
}

/// Numbers a frame anew.
pub(super) fn set_id(frame: &mut Encoded, id: u64) {
    frame[4..12].copy_from_slice(&id.to_be_bytes());
}

/// Reads a frame; `None` if the other side has ended between two frames.
pub(super) async fn read(
    stream: &mut (impl AsyncRead + Unpin),
    limit: usize,
) -> io::Result<Option<(Head, Vec<u8>)>> {
    let mut head = [0; HEAD_BYTES];
    if stream.read(&mut head[..1]).await? == 0 {
        return Ok(None);
    }
    stream.read_exact(&mut head[1..]).await?;
    let head = Head::decode(&head, limit).map_err(invalid_data)?;
    let mut body = Vec::with_capacity(head.length.min(FIRST_BYTES));
    let length = head.length as u64;
    let read = stream.take(length).read_to_end(&mut body).await?;
    if read < head.length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(Some((head, body)))
}

pub(super) async fn write(stream: &mut (impl AsyncWrite + Unpin), frame: &[u8]) -> io::Result<()> {
    stream.write_all(frame).await
}

/// What cannot be understood, as a failure of the connection, which it ends.
pub(super) fn invalid_data(malformed: Malformed) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, malformed)
}
