//! Answers.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use serde_json::Value;
use tortie_serve::OPENMETRICS;

use crate::discovery::Aggregation;
use crate::failure::Failure;
use crate::openapi::Document;

pub(super) const JSON: &str = "application/json";

/// A JSON document.
pub(super) fn json(code: StatusCode, value: &Value) -> Response {
    let mut text = value.to_string();
    text.push('\n');
    with_type(code, JSON, text.into())
}

/// A JSON document that is written already, or being written.
pub(super) fn bytes(code: StatusCode, body: Body) -> Response {
    with_type(code, JSON, body)
}

/// A line of text.
pub(super) fn text(text: &'static str) -> Response {
    with_type(StatusCode::OK, "text/plain; charset=utf-8", text.into())
}

/// Figures for Prometheus.
pub(super) fn metrics(text: String) -> Response {
    with_type(StatusCode::OK, OPENMETRICS, text.into())
}

/// Why a request was not carried out.
pub(super) fn failure(failure: &Failure) -> Response {
    let code =
        StatusCode::from_u16(failure.reason.code()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = json(code, &failure.to_status());
    if let Some(seconds) = failure.details.retry_after {
        response
            .headers_mut()
            .insert(header::RETRY_AFTER, seconds.into());
    }
    if code == StatusCode::UNAUTHORIZED {
        let value = HeaderValue::from_static("Bearer");
        response
            .headers_mut()
            .insert(header::WWW_AUTHENTICATE, value);
    }
    response
}

/// How many mistakes are told, and how many bytes of all of them: headers have bounds.
const MOST_WARNINGS: usize = 16;
const WARNING_BYTES: usize = 4096;

/// An answer that also tells of mistakes which were put up with.
pub(super) fn with_warnings(mut response: Response, warnings: &[String]) -> Response {
    let mut bytes = 0;
    let warnings = warnings.iter().take(MOST_WARNINGS).take_while(|warning| {
        bytes += warning.len();
        bytes <= WARNING_BYTES
    });
    for warning in warnings {
        let text = warning.escape_default().collect::<String>();
        // Escaped, it has no character that a header cannot hold.
        if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{text}\"")) {
            response.headers_mut().append(header::WARNING, value);
        }
    }
    response
}

/// All resources of all groups at once.
pub(super) fn aggregated(document: &Value, aggregation: Aggregation) -> Response {
    let mut response = json(StatusCode::OK, document);
    let media_type = format!(
        "application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList",
        aggregation.as_str()
    );
    if let Ok(value) = HeaderValue::from_str(&media_type) {
        response.headers_mut().insert(header::CONTENT_TYPE, value);
    }
    response
}

/// A document that clients may have already.
pub(super) fn document(
    document: &Document,
    media_type: &'static str,
    headers: &HeaderMap,
) -> Response {
    let tag = format!("\"{}\"", document.hash);
    let is_known = headers
        .get(header::IF_NONE_MATCH)
        .is_some_and(|known| known == tag.as_str());
    let mut response = if is_known {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response
    } else {
        with_type(StatusCode::OK, media_type, document.bytes.clone().into())
    };
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response
}

fn with_type(code: StatusCode, media_type: &'static str, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static("no-cache, private"),
    );
    response
}
