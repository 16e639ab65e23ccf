//! What a client sends.

use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody as _};
use axum::http::{HeaderMap, header};
use futures::StreamExt as _;
use serde_json::Value;

use super::repeated::repeated_fields;
use crate::failure::{Failure, Reason, Result};
use crate::options::Query;
use crate::protobuf;
use crate::service::DeleteOptions;

/// The largest body that is taken, as in Kubernetes.
const MAX_BYTES: usize = 3 << 20;

/// How much of a body that nobody wants is read, and for how long.
const MAX_DISCARDED: usize = 256 << 10;
const DISCARDING: Duration = Duration::from_secs(1);

/// A body as it was sent.
#[derive(Debug, Clone)]
pub(super) struct Sent {
    /// Without parameters.
    pub(super) media_type: String,
    pub(super) bytes: Bytes,
}

impl Sent {
    /// Reads a body to its end.
    pub(super) async fn read(headers: &HeaderMap, body: Body) -> Result<Self> {
        let media_type = headers.get(header::CONTENT_TYPE);
        let media_type = media_type
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default();
        let media_type = media_type.split(';').next().unwrap_or_default().trim();
        let media_type = media_type.to_ascii_lowercase();
        let bytes = axum::body::to_bytes(body, MAX_BYTES).await;
        let bytes = bytes.map_err(|_| {
            let message = format!("Request entity too large: limit is {MAX_BYTES}");
            Failure::new(Reason::TooLarge, message)
        })?;
        Ok(Self { media_type, bytes })
    }

    /// The fields that it gives more than once. Readers of YAML refuse them, and protobuf has a meaning for them.
    pub(super) fn repeated_fields(&self) -> Vec<String> {
        match self.media_type.as_str() {
            "" => repeated_fields(&self.bytes),
            json if json.ends_with("json") => repeated_fields(&self.bytes),
            _ => Vec::new(),
        }
    }

    /// An object in JSON, YAML or, if it is one of Kubernetes' own, protobuf.
    pub(super) fn object(&self) -> Result<Value> {
        object(&self.media_type, &self.bytes)
    }
}

/// How long a body is going to be: the longest there is, if that is not said.
pub(super) fn length(body: &Body) -> usize {
    let length = body.size_hint().exact();
    let length = length.and_then(|length| usize::try_from(length).ok());
    length.unwrap_or(MAX_BYTES).min(MAX_BYTES)
}

/// Reads a body that nobody wants, and keeps nothing of it: a client that is still sending when the connection ends would
/// not see the answer.
pub(super) async fn discard(body: Body) {
    let mut chunks = body.into_data_stream();
    let read = async {
        let mut left = MAX_DISCARDED;
        while let Some(Ok(chunk)) = chunks.next().await
            && chunk.len() < left
        {
            left -= chunk.len();
        }
    };
    // What is not there in time is not waited for.
    let _ = tokio::time::timeout(DISCARDING, read).await;
}

pub(super) fn object(media_type: &str, bytes: &[u8]) -> Result<Value> {
    let value = match media_type {
        "" | "application/json" => serde_json::from_slice(bytes)
            .map_err(|error| Failure::bad_request(format!("the body is not JSON: {error}")))?,
        "application/yaml" => {
            let text = std::str::from_utf8(bytes)
                .map_err(|_| Failure::bad_request("the body is not a text in UTF-8"))?;
            tortie_api::yaml::parse_one(text)
                .map_err(|error| Failure::bad_request(format!("the body is not YAML: {error}")))?
        }
        protobuf::MEDIA_TYPE => protobuf::decode(bytes)?,
        other => {
            let message = format!(
                "the body of the request was in an unknown format - accepted media types include: application/json, \
                 application/yaml, {}; it was {other}",
                protobuf::MEDIA_TYPE
            );
            return Err(Failure::new(Reason::UnsupportedMediaType, message));
        }
    };
    match value {
        Value::Object(_) => Ok(value),
        _ => Err(Failure::bad_request("the body must be an object")),
    }
}

/// What a deletion asks for, in its body or its query.
pub(super) fn delete_options(body: &Sent, query: &Query) -> Result<DeleteOptions> {
    let write = query.write_options()?;
    let given = if body.bytes.is_empty() {
        Value::Null
    } else {
        body.object()?
    };
    let text = |pointer: &str| {
        given
            .pointer(pointer)
            .and_then(Value::as_str)
            .map(ToOwned::to_owned)
    };
    let dry_run = match given.get("dryRun") {
        None | Some(Value::Null) => false,
        Some(Value::Array(values)) if values.iter().all(|value| value == "All") => {
            !values.is_empty()
        }
        Some(other) => {
            return Err(Failure::bad_request(format!(
                "dryRun: {other}: must be [\"All\"]"
            )));
        }
    };
    Ok(DeleteOptions {
        uid: text("/preconditions/uid"),
        revision: text("/preconditions/resourceVersion"),
        is_dry_run: write.is_dry_run || dry_run,
    })
}
