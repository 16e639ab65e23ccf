//! Watches: one connection, until it ends or is silent for too long.

use std::borrow::Cow;
use std::io;
use std::time::Duration;

use futures::io::AsyncBufReadExt as _;
use futures::stream::{self, BoxStream, Stream, StreamExt as _};
use http::header::{ACCEPT_ENCODING, HeaderValue};
use kube::api::WatchParams;
use kube::core::Status;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::endpoint::{Endpoint, Selection, built, in_time};
use super::failure::Error;

/// Seconds after which the API server ends a watch; bookmarks come more often than this.
const WATCH_SECONDS: u32 = 240;

/// A watch that is silent for longer than it may last is dead.
pub(super) const WATCH_SILENCE: Duration = Duration::from_secs(WATCH_SECONDS as u64 + 30);

/// What the API server tells, until the connection ends; a failure is the last.
pub type Connection = BoxStream<'static, Result<Told, Error>>;

/// A change of an object, which is given as JSON.
#[derive(Debug)]
pub enum Told {
    /// It is there.
    Set(Box<RawValue>),
    /// It is gone; so it was last.
    Deleted(Box<RawValue>),
    /// None, but an object with a newer revision.
    Bookmark(Box<RawValue>),
}

#[derive(Deserialize)]
struct LineJson<'a> {
    #[serde(rename = "type", borrow)]
    what: Cow<'a, str>,
    #[serde(borrow)]
    object: &'a RawValue,
}

impl Endpoint {
    /// Connects to the changes after a revision.
    pub async fn watch(
        &self,
        client: &kube::Client,
        at: &Selection,
        revision: &str,
    ) -> Result<Connection, Error> {
        let params = WatchParams {
            label_selector: at.label_selector(),
            field_selector: at.field_selector(),
            timeout: Some(WATCH_SECONDS),
            bookmarks: true,
            ..WatchParams::default()
        };
        let collection = self.collection(&at.namespace)?;
        let request = if self.has_metadata_only {
            collection.watch_metadata(&params, revision)
        } else {
            collection.watch(&params, revision)
        };
        let mut request = built(request)?;
        // Compressed, events would wait for each other.
        let headers = request.headers_mut();
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let body = in_time("a watch", client.request_stream(request)).await?;
        Ok(connection(body.lines().boxed()))
    }
}

fn connection(
    lines: impl Stream<Item = io::Result<String>> + Unpin + Send + 'static,
) -> Connection {
    let told = stream::unfold(Some(lines), |lines| async move {
        let mut lines = lines?;
        let line = match tokio::time::timeout(WATCH_SILENCE, lines.next()).await {
            Ok(line) => line?.map_err(|error| kube::Error::ReadEvents(error).into()),
            Err(_) => Err(Error::TimedOut("a watch")),
        };
        let told = line.and_then(|line| told(&line));
        if told.as_ref().is_err_and(is_cut_off) {
            return None;
        }
        let goes_on = told.is_ok();
        Some((told, goes_on.then_some(lines)))
    });
    told.boxed()
}

fn told(line: &str) -> Result<Told, Error> {
    let read: LineJson<'_> = match serde_json::from_str(line) {
        Ok(read) => read,
        // What a server says that cannot go on, without an event around it.
        Err(error) => {
            let refusal = refusal(line).ok();
            let refusal = refusal.filter(|refusal| refusal.code != 0);
            return Err(refusal.map_or_else(|| error.into(), failed));
        }
    };
    let object = || read.object.to_owned();
    match &*read.what {
        "ADDED" | "MODIFIED" => Ok(Told::Set(object())),
        "DELETED" => Ok(Told::Deleted(object())),
        "BOOKMARK" => Ok(Told::Bookmark(object())),
        "ERROR" => Err(failed(refusal(read.object.get())?)),
        what => {
            let message = format!("`{what}` is no type of events");
            Err(<serde_json::Error as serde::de::Error>::custom(message).into())
        }
    }
}

fn refusal(status: &str) -> serde_json::Result<Status> {
    serde_json::from_str(status)
}

fn failed(status: Status) -> Error {
    kube::Error::Api(status.boxed()).into()
}

/// Whether a connection just ended, in the middle of a line or of the framing around it, as proxies end those that are old.
fn is_cut_off(error: &Error) -> bool {
    let Error::Kube(error) = error else {
        return false;
    };
    match &**error {
        kube::Error::SerdeError(error) => error.is_eof(),
        kube::Error::ReadEvents(error) => is_unexpected_end(error),
        _ => false,
    }
}

fn is_unexpected_end(error: &io::Error) -> bool {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        return true;
    }
    let mut cause = error
        .get_ref()
        .map(|cause| cause as &(dyn std::error::Error + 'static));
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return is_unexpected_end(error);
        }
        cause = error.source();
    }
    // Decoders of chunks say so in their text only.
    error.to_string().contains("unexpected EOF during chunk")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Failure;

    /// What is told of lines: the first letter of each event, and the name of the last one.
    async fn told(lines: impl Stream<Item = io::Result<String>> + Send + 'static) -> String {
        let mut connection = connection(lines.boxed());
        let mut words = Vec::new();
        while let Some(told) = connection.next().await {
            words.push(match told {
                Ok(Told::Set(object)) => format!("+{object}"),
                Ok(Told::Deleted(object)) => format!("-{object}"),
                Ok(Told::Bookmark(object)) => format!("={object}"),
                Err(error) => match Failure::from(error) {
                    Failure::Gone => "gone".to_owned(),
                    Failure::Unreachable(_) => "unreachable".to_owned(),
                    failure => failure.to_string(),
                },
            });
        }
        words.join(" ")
    }

    fn lines(lines: &[&str]) -> impl Stream<Item = io::Result<String>> + Send + 'static {
        let lines: Vec<_> = lines.iter().map(|line| Ok((*line).to_owned())).collect();
        stream::iter(lines)
    }

    #[tokio::test]
    async fn each_line_is_a_change_or_the_end() {
        let check = async |given: &[&str], expected| assert_eq!(told(lines(given)).await, expected);
        let set = r#"{"type":"ADDED","object":1}"#;
        let gone = r#"{"code":410,"message":"too old"}"#;
        let error = format!(r#"{{"type":"ERROR","object":{gone}}}"#);
        check(
            &[
                set,
                r#"{"object":{"a":[2]},"type":"MODIFIED"}"#,
                r#"{"type":"DELETED","object":3}"#,
                r#"{"type":"BOOKMARK","object":4}"#,
            ],
            r#"+1 +{"a":[2]} -3 =4"#,
        )
        .await;
        check(&[set, &error, set], "+1 gone").await;
        check(&[set, gone, set], "+1 gone").await;
        check(&[set, r#"{"type":"ADDED","obj"#], "+1").await;
        check(
            &["{}", set],
            "Error deserializing response: missing field `type` at line 1 column 2",
        )
        .await;
        check(
            &[r#"{"type":"NEW","object":1}"#],
            "Error deserializing response: `NEW` is no type of events",
        )
        .await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_is_silent_for_too_long_is_dead() {
        let set = lines(&[r#"{"type":"ADDED","object":1}"#]);
        let start = tokio::time::Instant::now();
        assert_eq!(told(set.chain(stream::pending())).await, "+1 unreachable");
        let silence = start.elapsed();
        assert!(silence >= WATCH_SILENCE && silence < 2 * WATCH_SILENCE);
    }

    #[tokio::test]
    async fn a_connection_that_is_cut_off_is_over_and_another_failure_is_told() {
        let set = || lines(&[r#"{"type":"ADDED","object":1}"#]);
        let end = || io::Error::from(io::ErrorKind::UnexpectedEof);
        for cut in [
            end(),
            io::Error::other(io::Error::other(end())),
            io::Error::other("unexpected EOF during chunk size line"),
        ] {
            assert_eq!(told(set().chain(stream::iter([Err(cut)]))).await, "+1");
        }
        let refused = io::Error::from(io::ErrorKind::ConnectionReset);
        let told = told(set().chain(stream::iter([Err(refused)]))).await;
        assert_eq!(told, "+1 unreachable");
    }
}
