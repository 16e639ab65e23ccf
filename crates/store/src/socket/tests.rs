//! Hostile frames, and errors on their way through the socket.

use std::error::Error as _;
use std::sync::Arc;

use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tortie_api::{Kind, Path, Problems};

use super::failure::Failure;
use super::*;
use crate::embedded::EmbeddedStore;
use crate::key::Key;
use crate::store::Store;
use crate::{Error, Query};

fn start() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(folder.path().join("store")).unwrap();
    let listener = bind(folder.path().join("run/socket")).unwrap();
    tokio::spawn(serve(Arc::new(store), listener, std::future::pending()));
    folder
}

fn frame(body: &[u8]) -> Vec<u8> {
    let mut frame = u32::try_from(body.len()).unwrap().to_be_bytes().to_vec();
    frame.extend([0, 0, 0, 0, 0, 0, 0, 7, 0]);
    frame.extend(body);
    frame
}

/// Sends bytes on a new connection, and gives what comes back after the greeting until the server hangs up.
async fn answer_to(folder: &TempDir, parts: &[&[u8]]) -> Vec<u8> {
    let mut stream = UnixStream::connect(folder.path().join("run/socket"))
        .await
        .unwrap();
    let greeting = super::frame::read(&mut stream, MAX_ANSWER).await.unwrap();
    assert!(greeting.is_some());
    for part in parts {
        // The server may have hung up before the last part.
        let _ = stream.write_all(part).await;
    }
    let mut answer = Vec::new();
    // A reset is how a hang-up looks if the server has not read everything.
    let _ = stream.read_to_end(&mut answer).await;
    answer
}

#[tokio::test]
async fn frames_that_are_none_end_their_own_connection_only() {
    let folder = start();
    let store = SocketStore::connect(folder.path().join("run/socket"))
        .await
        .unwrap();
    let hello = frame(br#"{"protocol":1}"#);
    let too_long = [&[0xff; 4][..], &[0; 9], b"{}"].concat();
    let bad_mark = [&[0, 0, 0, 2][..], &[0; 8], &[2], b"{}"].concat();
    let unknown_kind = frame(br#"{"get":{"kind":"Teapot","namespace":"","name":"a"}}"#);
    let deep = frame("[".repeat(100_000).as_bytes());
    let hostile: [&[&[u8]]; 8] = [
        &[&too_long],
        &[&hello, &too_long],
        &[&hello, &bad_mark],
        &[&frame(b"not JSON")],
        &[&frame(br#"{"protocol":2}"#), &frame(b"{}")],
        &[&hello, &frame(br#"{"noSuchCall":1}"#)],
        &[&hello, &unknown_kind],
        &[&hello, &deep],
    ];
    for parts in hostile {
        assert_eq!(answer_to(&folder, parts).await, b"", "{parts:?}");
        store.list(&Query::all(Kind::Tier)).await.unwrap();
    }
}

#[tokio::test]
async fn a_frame_that_is_cut_off_is_not_carried_out() {
    let folder = start();
    let store = SocketStore::connect(folder.path().join("run/socket"))
        .await
        .unwrap();
    let whole = frame(br#"{"get":{"kind":"Tier","namespace":"","name":"a"}}"#);
    for length in [1, 12, 13, whole.len() - 1] {
        let mut stream = UnixStream::connect(folder.path().join("run/socket"))
            .await
            .unwrap();
        super::frame::read(&mut stream, MAX_ANSWER).await.unwrap();
        let hello = frame(br#"{"protocol":1}"#);
        stream.write_all(&hello).await.unwrap();
        stream.write_all(&whole[..length]).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        assert_eq!(answer, b"");
    }
    store.list(&Query::all(Kind::Tier)).await.unwrap();
}

#[tokio::test]
async fn an_object_that_cannot_be_read_is_refused_and_the_connection_goes_on() {
    let folder = start();
    let hello = frame(br#"{"protocol":1}"#);
    let broken = frame(br#"{"create":{"kind":"Tier","revision":"","json":[1]}}"#);
    let mut stream = UnixStream::connect(folder.path().join("run/socket"))
        .await
        .unwrap();
    super::frame::read(&mut stream, MAX_ANSWER).await.unwrap();
    stream.write_all(&hello).await.unwrap();
    stream.write_all(&broken).await.unwrap();
    let (head, body) = super::frame::read(&mut stream, MAX_ANSWER)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(head.id, 7);
    let body = String::from_utf8(body).unwrap();
    assert!(body.contains("cannot be carried out"), "{body}");
    stream.write_all(&broken).await.unwrap();
    let again = super::frame::read(&mut stream, MAX_ANSWER).await.unwrap();
    assert!(again.is_some());
}

#[test]
fn requests_are_read_without_a_socket() {
    let whole = frame(br#"{"get":{"kind":"Tier","namespace":"","name":"a"}}"#);
    let head = decode_request(&whole).unwrap().unwrap();
    assert_eq!(
        (head.id, head.length, head.has_more),
        (7, whole.len() - 13, false)
    );
    for length in 0..whole.len() {
        assert!(decode_request(&whole[..length]).unwrap().is_none());
    }
    let too_long = u32::try_from(MAX_REQUEST + 1).unwrap().to_be_bytes();
    let head = [&too_long[..], &[0; 9]].concat();
    assert!(matches!(
        decode_request(&head),
        Err(Malformed::TooLong { .. })
    ));
}

fn problems() -> Problems {
    let mut problems = Problems::default();
    let root = Path::ROOT;
    let (spec, annotations) = (root.field("spec"), root.field("annotations"));
    let rules = spec.field("rules");
    problems.add(&root, "whole", "must be another");
    problems.add(
        &rules.index(3).field("nets").index(0),
        "10.0.0.0/33",
        "must be a network",
    );
    problems.add(&annotations.field("a.b/c [0]"), 7, "must be text");
    problems.add_missing(&spec.field("größe"), "must be there");
    problems
}

#[test]
fn every_error_survives_the_way_through_the_socket() {
    let key = Key::namespaced(Kind::NetworkSet, "ns", "a");
    let errors = [
        Error::NotFound(key.clone()),
        Error::AlreadyExists(key.clone()),
        Error::Conflict(key.clone()),
        Error::Gone("12".to_owned()),
        Error::Invalid {
            key: key.clone(),
            problems: problems(),
        },
        Error::Unsupported {
            operation: "write together",
            key,
            reason: "it cannot".to_owned(),
        },
        Error::Unauthorized("no".to_owned()),
        Error::unavailable("far", Error::other("near", "nearest")),
        Error::message("other"),
    ];
    for error in errors {
        let text = |error: &Error| (format!("{error:?}"), error.to_string(), causes(error));
        let before = text(&error);
        let failure = serde_json::to_string(&Failure::from(error)).unwrap();
        let after = Error::from(serde_json::from_str::<Failure>(&failure).unwrap());
        let after = text(&after);
        assert_eq!((&after.1, &after.2), (&before.1, &before.2));
        if before.2.is_empty() {
            assert_eq!(after.0, before.0);
        }
    }
}

fn causes(error: &Error) -> Vec<String> {
    let mut causes = Vec::new();
    let mut next = error.source();
    while let Some(cause) = next {
        causes.push(cause.to_string());
        next = cause.source();
    }
    causes
}

#[tokio::test]
async fn the_file_is_compacted_by_the_process_that_has_it() {
    let folder = start();
    let store = SocketStore::connect(folder.path().join("run/socket"))
        .await
        .unwrap();
    let compacted = store.compact().await.unwrap();
    assert!(compacted.after > 0 && compacted.after <= compacted.before);
    store.list(&Query::all(Kind::Tier)).await.unwrap();
}
