//! What a client accepts, and objects in that form.

use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::reply;
use crate::failure::{Failure, Reason, Result};
use crate::openapi;
use crate::options::Query;
use crate::registry::ResourceType;
use crate::table;

/// How many forms of an answer are looked at.
const MAX_RANGES: usize = 32;

/// The forms that a client accepts, in its order.
#[derive(Debug, Clone, Default)]
pub(super) struct Accept {
    ranges: Vec<Range>,
}

/// One form, such as `application/json;as=Table;v=v1;g=meta.k8s.io`.
#[derive(Debug, Clone, Default)]
pub(super) struct Range {
    media_type: String,
    kind: String,
    version: String,
    group: String,
}

/// How objects are given.
#[derive(Debug, Clone, Copy)]
pub(super) enum View {
    /// As they are.
    Whole,
    /// Only their metadata.
    Metadata(table::Version),
    /// As rows for people.
    Table(table::Options),
}

impl Accept {
    pub(super) fn parse(headers: &HeaderMap) -> Self {
        let values = headers.get_all(header::ACCEPT).iter();
        let texts = values.filter_map(|value| value.to_str().ok());
        let ranges = texts.flat_map(|text| text.split(','));
        Self {
            ranges: ranges.take(MAX_RANGES).map(Range::parse).collect(),
        }
    }

    pub(super) fn ranges(&self) -> impl Iterator<Item = &Range> {
        self.ranges.iter()
    }

    /// The protobuf form of the document about all resources, if the client prefers it.
    pub(super) fn openapi_protobuf(&self) -> Option<&'static str> {
        let first = self.ranges.first()?.media_type.as_str();
        // The older name is no media type by the rules, and clients that ask for it cannot read it in an answer.
        let is_known = [openapi::V2_PROTOBUF, openapi::V2_PROTOBUF_OLD].contains(&first);
        is_known.then_some(openapi::V2_PROTOBUF)
    }

    /// The first form in which objects can be given.
    pub(super) fn view(&self, query: &Query) -> Result<View> {
        if self.ranges.is_empty() {
            return Ok(View::Whole);
        }
        for range in &self.ranges {
            if !matches!(
                range.media_type.as_str(),
                "application/json" | "application/*" | "*/*"
            ) {
                continue;
            }
            let version = match (range.group.as_str(), range.version.as_str()) {
                ("meta.k8s.io", "v1") => Some(table::Version::V1),
                ("meta.k8s.io", "v1beta1") => Some(table::Version::V1Beta1),
                _ => None,
            };
            match (range.kind.as_str(), version) {
                ("", _) => return Ok(View::Whole),
                ("Table", Some(version)) => {
                    let include = query.get("includeObject").unwrap_or_default();
                    let include = table::Include::parse(include).ok_or_else(|| {
                        Failure::bad_request(
                            "includeObject: must be one of None, Metadata and Object",
                        )
                    })?;
                    return Ok(View::Table(table::Options {
                        version,
                        include,
                        has_columns: true,
                    }));
                }
                ("PartialObjectMetadata" | "PartialObjectMetadataList", Some(version)) => {
                    return Ok(View::Metadata(version));
                }
                _ => {}
            }
        }
        Err(Failure::new(
            Reason::NotAcceptable,
            "only the following media types are accepted: application/json",
        ))
    }
}

impl Range {
    fn parse(text: &str) -> Self {
        let mut parts = text.split(';').map(str::trim);
        let mut range = Self {
            media_type: parts.next().unwrap_or_default().to_ascii_lowercase(),
            ..Self::default()
        };
        for part in parts {
            match part.split_once('=') {
                Some(("as", value)) => value.clone_into(&mut range.kind),
                Some(("v", value)) => value.clone_into(&mut range.version),
                Some(("g", value)) => value.clone_into(&mut range.group),
                _ => {}
            }
        }
        range
    }

    /// The version, if this asks for all resources of all groups at once.
    pub(super) fn of_discovery(&self) -> Option<&str> {
        let is = self.media_type == "application/json"
            && self.group == "apidiscovery.k8s.io"
            && self.kind == "APIGroupDiscoveryList";
        is.then_some(self.version.as_str())
    }
}

impl View {
    pub(super) fn object(self, of: &ResourceType, code: StatusCode, object: &Value) -> Response {
        match self {
            Self::Whole => reply::json(code, object),
            _ => reply::json(code, &self.render(of, object)),
        }
    }

    /// One object in this form.
    pub(super) fn render(self, of: &ResourceType, object: &Value) -> Value {
        match self {
            Self::Whole => object.clone(),
            Self::Metadata(version) => table::partial(object, version),
            Self::Table(options) => {
                let metadata = &object["metadata"];
                table::table(of, [object], metadata, options, Timestamp::now())
            }
        }
    }

    /// The same form for events after the first: columns are described once.
    pub(super) fn after_first(self) -> Self {
        match self {
            Self::Table(options) => Self::Table(table::Options {
                has_columns: false,
                ..options
            }),
            other => other,
        }
    }

    /// That an object is gone.
    pub(super) fn gone(of: &ResourceType, name: &str, object: &Value) -> Response {
        let status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "details": {
                "name": name,
                "group": of.group,
                "kind": of.plural,
                "uid": object["metadata"]["uid"],
            },
        });
        reply::json(StatusCode::OK, &status)
    }
}
