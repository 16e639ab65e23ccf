//! Watches as a stream of JSON documents, one a line.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use futures::stream;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use super::accept::View;
use super::metrics::OpenWatch;
use crate::failure::Failure;
use crate::service::{WatchEvent, WatchKind, Watching};

/// How often a quiet watch is told how far it has come.
const BOOKMARK_INTERVAL: Duration = Duration::from_mins(1);

/// How long a watch lasts whose client does not say.
const LONGEST: Duration = Duration::from_hours(1);

/// Lines are not joined beyond so many bytes.
const ENOUGH: usize = 64 << 10;

/// When a watch ends that nothing is wrong with.
pub(super) struct End {
    /// After so many seconds, if the client says so.
    pub(super) timeout: Option<u64>,
    /// When the server ends.
    pub(super) closing: watch::Receiver<bool>,
    /// When tiers come or change, if the objects are in tiers: the client may then see others.
    pub(super) tiers: Option<Watching>,
}

struct State {
    watching: Watching,
    view: View,
    end: Instant,
    closing: watch::Receiver<bool>,
    tiers: Option<Watching>,
    is_over: bool,
    /// Counts the watch for as long as it is open.
    _open: OpenWatch,
}

/// The answer to a watch. It goes on until its time is over, the client leaves, or it cannot keep up.
pub(super) fn response(watching: Watching, view: View, end: End, open: OpenWatch) -> Response {
    let longest = end
        .timeout
        .filter(|seconds| *seconds > 0)
        .map_or(LONGEST, Duration::from_secs);
    let state = State {
        watching,
        view,
        end: Instant::now() + longest.min(LONGEST),
        closing: end.closing,
        tiers: end.tiers,
        is_over: false,
        _open: open,
    };
    let lines = stream::unfold(state, async |mut state| {
        let line = state.next().await?;
        Some((Ok::<Bytes, std::convert::Infallible>(line), state))
    });
    with_type(Body::from_stream(lines))
}

/// The answer to a watch from a revision whose changes are forgotten: one that ends at once.
pub(super) fn expired(failure: &Failure) -> Response {
    with_type(Body::from(error_line(failure)))
}

fn with_type(body: Body) -> Response {
    let mut response = Response::new(body);
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

impl State {
    async fn next(&mut self) -> Option<Bytes> {
        while !self.is_over {
            let wake = self.end.min(Instant::now() + BOOKMARK_INTERVAL);
            let next = timeout_at(wake, self.watching.next());
            let next = tokio::select! {
                next = next => next,
                () = closed(&mut self.closing) => return None,
                () = new_tier(self.tiers.as_mut()) => return None,
            };
            match next {
                Ok(Ok(event)) => return Some(self.lines(&event)),
                Ok(Err(failure)) => {
                    self.is_over = true;
                    return Some(error_line(&failure));
                }
                Err(_) => {
                    self.is_over = Instant::now() >= self.end;
                    if self.watching.wants_bookmarks() {
                        let bookmark = self.watching.bookmark();
                        return Some(self.line(&bookmark));
                    }
                }
            }
        }
        None
    }

    /// A line, and those of changes that came with it: one write costs less than many.
    fn lines(&mut self, first: &WatchEvent) -> Bytes {
        let line = self.line(first);
        let Some(mut next) = self.watching.next_ready() else {
            return line;
        };
        let mut lines = line.to_vec();
        loop {
            lines.extend_from_slice(&self.line(&next));
            if lines.len() >= ENOUGH {
                break;
            }
            match self.watching.next_ready() {
                Some(event) => next = event,
                None => break,
            }
        }
        lines.into()
    }

    fn line(&mut self, event: &WatchEvent) -> Bytes {
        if matches!(self.view, View::Whole) || event.kind == WatchKind::Bookmark {
            return event.text(|| whole_line(event));
        }
        let object = self.view.render(self.watching.of(), &event.object.whole());
        self.view = self.view.after_first();
        to_line(&json!({"type": event.kind.as_str(), "object": object}))
    }
}

/// The same as [`to_line`] makes of it, without a copy of the object.
fn whole_line(event: &WatchEvent) -> Bytes {
    let mut line = b"{\"object\":".to_vec();
    event.object.write(&mut line);
    line.extend_from_slice(format!(",\"type\":\"{}\"}}\n", event.kind.as_str()).as_bytes());
    line.into()
}

async fn closed(closing: &mut watch::Receiver<bool>) {
    // Whoever could close is gone: then so is the server.
    let _ = closing.wait_for(|is_closing| *is_closing).await;
}

/// Waits until a tier comes or changes, or that can no longer be known.
async fn new_tier(tiers: Option<&mut Watching>) {
    let Some(tiers) = tiers else {
        return std::future::pending().await;
    };
    while let Ok(event) = tiers.next().await {
        if matches!(event.kind, WatchKind::Added | WatchKind::Modified) {
            return;
        }
    }
}

fn error_line(failure: &Failure) -> Bytes {
    to_line(&json!({"type": "ERROR", "object": failure.to_status()}))
}

fn to_line(value: &Value) -> Bytes {
    let mut line = value.to_string();
    line.push('\n');
    line.into()
}
