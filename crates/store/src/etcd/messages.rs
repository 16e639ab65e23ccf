//! The part of etcd's gRPC API that is used here, as prost messages. Field numbers are those of
//! etcd's `rpc.proto`, `kv.proto` and `auth.proto`; fields that are not used are left out.

use prost::{Enumeration, Message, Oneof};

#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct ResponseHeader {
    #[prost(int64, tag = "3")]
    pub(super) revision: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct KeyValue {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) key: Vec<u8>,
    #[prost(int64, tag = "2")]
    pub(super) create_revision: i64,
    #[prost(int64, tag = "3")]
    pub(super) mod_revision: i64,
    #[prost(bytes = "vec", tag = "5")]
    pub(super) value: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct RangeRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) range_end: Vec<u8>,
    #[prost(int64, tag = "3")]
    pub(super) limit: i64,
    #[prost(int64, tag = "4")]
    pub(super) revision: i64,
    #[prost(bool, tag = "8")]
    pub(super) keys_only: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct RangeResponse {
    #[prost(message, optional, tag = "1")]
    pub(super) header: Option<ResponseHeader>,
    #[prost(message, repeated, tag = "2")]
    pub(super) kvs: Vec<KeyValue>,
    #[prost(bool, tag = "3")]
    pub(super) more: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct PutRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) value: Vec<u8>,
    #[prost(bool, tag = "4")]
    pub(super) prev_kv: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct PutResponse {
    #[prost(message, optional, tag = "2")]
    pub(super) prev_kv: Option<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct DeleteRangeRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) key: Vec<u8>,
    #[prost(bool, tag = "3")]
    pub(super) prev_kv: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct DeleteRangeResponse {
    #[prost(message, repeated, tag = "3")]
    pub(super) prev_kvs: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct RequestOp {
    #[prost(oneof = "Request", tags = "1, 2, 3")]
    pub(super) request: Option<Request>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(super) enum Request {
    #[prost(message, tag = "1")]
    Range(RangeRequest),
    #[prost(message, tag = "2")]
    Put(PutRequest),
    #[prost(message, tag = "3")]
    DeleteRange(DeleteRangeRequest),
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ResponseOp {
    #[prost(oneof = "Response", tags = "1, 2, 3")]
    pub(super) response: Option<Response>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(super) enum Response {
    #[prost(message, tag = "1")]
    Range(RangeResponse),
    #[prost(message, tag = "2")]
    Put(PutResponse),
    #[prost(message, tag = "3")]
    DeleteRange(DeleteRangeResponse),
}

/// A condition of a transaction. The comparison is always "equal", which is 0 on the wire.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Compare {
    #[prost(enumeration = "CompareTarget", tag = "2")]
    pub(super) target: i32,
    #[prost(bytes = "vec", tag = "3")]
    pub(super) key: Vec<u8>,
    #[prost(oneof = "CompareTo", tags = "4, 6")]
    pub(super) to: Option<CompareTo>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub(super) enum CompareTarget {
    Version = 0,
    ModRevision = 2,
}

#[derive(Clone, Copy, PartialEq, Oneof)]
pub(super) enum CompareTo {
    #[prost(int64, tag = "4")]
    Version(i64),
    #[prost(int64, tag = "6")]
    ModRevision(i64),
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TxnRequest {
    #[prost(message, repeated, tag = "1")]
    pub(super) compare: Vec<Compare>,
    #[prost(message, repeated, tag = "2")]
    pub(super) success: Vec<RequestOp>,
    #[prost(message, repeated, tag = "3")]
    pub(super) failure: Vec<RequestOp>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TxnResponse {
    #[prost(message, optional, tag = "1")]
    pub(super) header: Option<ResponseHeader>,
    #[prost(bool, tag = "2")]
    pub(super) succeeded: bool,
    #[prost(message, repeated, tag = "3")]
    pub(super) responses: Vec<ResponseOp>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct CompactionRequest {
    #[prost(int64, tag = "1")]
    pub(super) revision: i64,
    #[prost(bool, tag = "2")]
    pub(super) physical: bool,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct CompactionResponse {}

#[derive(Clone, PartialEq, Message)]
pub(super) struct WatchRequest {
    #[prost(oneof = "WatchAction", tags = "1")]
    pub(super) action: Option<WatchAction>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(super) enum WatchAction {
    #[prost(message, tag = "1")]
    Create(WatchCreateRequest),
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct WatchCreateRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) range_end: Vec<u8>,
    #[prost(int64, tag = "3")]
    pub(super) start_revision: i64,
    #[prost(bool, tag = "4")]
    pub(super) progress_notify: bool,
    #[prost(bool, tag = "6")]
    pub(super) prev_kv: bool,
    #[prost(bool, tag = "8")]
    pub(super) fragment: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct WatchResponse {
    #[prost(message, optional, tag = "1")]
    pub(super) header: Option<ResponseHeader>,
    #[prost(bool, tag = "3")]
    pub(super) created: bool,
    #[prost(bool, tag = "4")]
    pub(super) canceled: bool,
    #[prost(int64, tag = "5")]
    pub(super) compact_revision: i64,
    #[prost(string, tag = "6")]
    pub(super) cancel_reason: String,
    #[prost(bool, tag = "7")]
    pub(super) fragment: bool,
    #[prost(message, repeated, tag = "11")]
    pub(super) events: Vec<WatchEvent>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct WatchEvent {
    #[prost(enumeration = "EventType", tag = "1")]
    pub(super) r#type: i32,
    #[prost(message, optional, tag = "2")]
    pub(super) kv: Option<KeyValue>,
    #[prost(message, optional, tag = "3")]
    pub(super) prev_kv: Option<KeyValue>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub(super) enum EventType {
    Put = 0,
    Delete = 1,
}

#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub(super) struct AuthenticateRequest {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) password: String,
}

#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub(super) struct AuthenticateResponse {
    #[prost(string, tag = "2")]
    pub(super) token: String,
}

/// Without what must stay secret.
impl std::fmt::Debug for AuthenticateRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AuthenticateRequest")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for AuthenticateResponse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AuthenticateResponse")
            .finish_non_exhaustive()
    }
}

// === impl KeyValue ===

impl KeyValue {
    /// The key as a path; none if it is not text, and so not one of Calico's.
    pub(super) fn path(&self) -> Option<&str> {
        std::str::from_utf8(&self.key).ok()
    }
}

// === impl Compare ===

impl Compare {
    /// There is no such key.
    pub(super) fn absent(path: &str) -> Self {
        let to = Some(CompareTo::Version(0));
        Self {
            target: CompareTarget::Version.into(),
            key: path.into(),
            to,
        }
    }

    /// The key was last changed at this revision.
    pub(super) fn unchanged(path: &str, revision: i64) -> Self {
        let to = Some(CompareTo::ModRevision(revision));
        Self {
            target: CompareTarget::ModRevision.into(),
            key: path.into(),
            to,
        }
    }
}

// === impl RequestOp ===

impl From<Request> for RequestOp {
    fn from(request: Request) -> Self {
        Self {
            request: Some(request),
        }
    }
}

impl RequestOp {
    pub(super) fn get(path: &str) -> Self {
        Request::Range(RangeRequest {
            key: path.into(),
            ..Default::default()
        })
        .into()
    }

    pub(super) fn put(path: &str, value: Vec<u8>) -> Self {
        Request::Put(PutRequest {
            key: path.into(),
            value,
            prev_kv: true,
        })
        .into()
    }

    pub(super) fn delete(path: &str) -> Self {
        Request::DeleteRange(DeleteRangeRequest {
            key: path.into(),
            prev_kv: true,
        })
        .into()
    }
}

// === impl TxnResponse ===

impl TxnResponse {
    /// The first key-value pair that the operations carried out gave, if any.
    pub(super) fn into_first(self) -> Option<KeyValue> {
        self.into_kvs().next()
    }

    /// All key-value pairs that the operations carried out gave.
    pub(super) fn into_kvs(self) -> impl Iterator<Item = KeyValue> {
        self.responses
            .into_iter()
            .filter_map(|op| op.response)
            .flat_map(|response| match response {
                Response::Range(response) => response.kvs,
                Response::Put(response) => response.prev_kv.into_iter().collect(),
                Response::DeleteRange(response) => response.prev_kvs,
            })
    }

    pub(super) fn revision(&self) -> i64 {
        self.header.map_or(0, |header| header.revision)
    }
}
