//! Requests that take long, and what they do to others.

use std::io::ErrorKind;

use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use tortie_apiserver::http::{Options, Places};

use crate::standalone::support::Alone;

pub(crate) const SETS: &str = "/apis/projectcalico.org/v3/globalnetworksets";

pub(crate) fn network_set(name: &str, size: u32) -> Value {
    let nets = (0..size).map(|number| {
        let [_, a, b, c] = number.to_be_bytes();
        format!("10.{a}.{b}.{c}/32")
    });
    json!({
        "apiVersion": "projectcalico.org/v3", "kind": "GlobalNetworkSet",
        "metadata": {"name": name}, "spec": {"nets": nets.collect::<Vec<_>>()},
    })
}

/// The runtime has one thread: whoever keeps it busy keeps everybody waiting.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn others_are_answered_while_a_large_object_is_stored() {
    let alone = Alone::start().await;
    let body = network_set("threats", 150_000).to_string();
    let mut heavy = alone.send("POST", SETS, "application/json", &body).await;
    let healthy = alone.get("/healthz").await;
    assert_eq!(healthy.code, 200);
    assert_eq!(
        alone.get("/apis/projectcalico.org/v3/tiers").await.code,
        200
    );
    // The large one has no answer yet.
    let early = heavy.try_read(&mut [0; 1]);
    assert_eq!(early.unwrap_err().kind(), ErrorKind::WouldBlock);
    let mut answer = Vec::new();
    heavy.read_to_end(&mut answer).await.unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 201 Created"));
    let stored = alone.get(&format!("{SETS}/threats")).await.json();
    assert_eq!(stored["spec"]["nets"].as_array().unwrap().len(), 150_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_finds_no_place_is_told_when_to_come_back() {
    let places = Places {
        reading: 1,
        writing: 1,
        kept: 0,
    };
    let alone = Alone::start_with(Options {
        places,
        ..Options::default()
    });
    let alone = alone.await;
    let body = network_set("threats", 150_000).to_string();
    let mut heavy = alone.send("POST", SETS, "application/json", &body).await;
    // Reads have places of their own.
    assert_eq!(alone.get(SETS).await.code, 200);
    let full = alone.post(SETS, &network_set("small", 1)).await;
    assert_eq!(full.code, 429, "{full:?}");
    assert!(full.head.contains("retry-after: 1"), "{}", full.head);
    heavy.read_to_end(&mut Vec::new()).await.unwrap();
    let stored = alone.post(SETS, &network_set("small", 1)).await;
    assert_eq!(stored.code, 201, "{stored:?}");
}

/// Whoever leaves before the checks are done has changed nothing.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_client_does_not_wait_for_is_not_stored() {
    let alone = Alone::start().await;
    let body = network_set("left", 150_000).to_string();
    drop(alone.send("POST", SETS, "application/json", &body).await);
    // It takes as long, and began later.
    let stayed = alone.post(SETS, &network_set("stayed", 150_000)).await;
    assert_eq!(stayed.code, 201, "{}", stayed.head);
    assert_eq!(alone.get(&format!("{SETS}/left")).await.code, 404);
}
