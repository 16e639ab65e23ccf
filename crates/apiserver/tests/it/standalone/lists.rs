//! Lists: in pages, of one state, and with little memory.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tortie_apiserver::http::Options;

use crate::standalone::heavy::{SETS, network_set};
use crate::standalone::support::{Alone, Answer};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn config_map(name: &str, labels: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "labels": labels}, "data": {"key": "before"},
    })
}

async fn store(alone: &Alone, names: impl IntoIterator<Item = &str>) {
    for name in names {
        let stored = alone.post(CONFIG_MAPS, &config_map(name, &json!({}))).await;
        assert_eq!(stored.code, 201, "{stored:?}");
    }
}

fn names(list: &Value) -> Vec<String> {
    let items = list["items"].as_array().unwrap().iter();
    items
        .map(|item| item["metadata"]["name"].as_str().unwrap().to_owned())
        .collect()
}

/// The names on all pages, of which each is read after `between`.
async fn pages(alone: &Alone, query: &str, between: impl AsyncFn(usize)) -> Vec<Vec<String>> {
    let (mut all, mut token, mut revision) = (Vec::new(), String::new(), None);
    loop {
        let page = alone
            .get(&format!("{CONFIG_MAPS}?{query}&continue={token}"))
            .await;
        assert_eq!(page.code, 200, "{page:?}");
        let page = page.json();
        let of = page["metadata"]["resourceVersion"].clone();
        assert_eq!(*revision.get_or_insert(of.clone()), of);
        all.push(names(&page));
        match page["metadata"]["continue"].as_str() {
            None => return all,
            Some(next) => next.clone_into(&mut token),
        }
        between(all.len()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn all_pages_show_the_state_of_the_first() {
    let alone = Alone::start().await;
    store(&alone, ["a", "b", "c", "d", "e"]).await;
    let seen = pages(&alone, "limit=2", async |page| {
        if page == 1 {
            store(&alone, ["c2", "f"]).await;
            for name in ["d", "e"] {
                let gone = alone
                    .ask("DELETE", &format!("{CONFIG_MAPS}/{name}"), "", "")
                    .await;
                assert_eq!(gone.code, 200, "{gone:?}");
            }
        }
    });
    let seen = seen.await;
    // Those of the cluster itself may be among them.
    let seen: Vec<String> = seen.into_iter().flatten().collect();
    let own: Vec<&str> = seen
        .iter()
        .map(String::as_str)
        .filter(|name| name.len() < 3)
        .collect();
    assert_eq!(own, ["a", "b", "c", "d", "e"]);
    let now = names(&alone.get(CONFIG_MAPS).await.json());
    let now: BTreeSet<&str> = now
        .iter()
        .map(String::as_str)
        .filter(|name| name.len() < 3)
        .collect();
    assert_eq!(now, BTreeSet::from(["a", "b", "c", "c2", "f"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_have_what_is_selected_and_say_what_is_left() {
    let alone = Alone::start().await;
    for number in 0..9 {
        let labels = json!({"odd": (number % 2).to_string()});
        let stored = alone
            .post(CONFIG_MAPS, &config_map(&format!("c{number}"), &labels))
            .await;
        assert_eq!(stored.code, 201, "{stored:?}");
    }
    let query = "limit=2&labelSelector=odd%3D1";
    let seen = pages(&alone, query, async |_| {}).await;
    assert!(seen.iter().all(|page| page.len() <= 2), "{seen:?}");
    assert_eq!(seen.concat(), ["c1", "c3", "c5", "c7"]);

    let all = alone.get(&format!("{CONFIG_MAPS}?limit=3")).await.json();
    let count = names(&alone.get(CONFIG_MAPS).await.json()).len();
    assert_eq!(all["metadata"]["remainingItemCount"], count - 3);
    let last = alone.get(&format!("{CONFIG_MAPS}?limit=100")).await.json();
    assert_eq!(last["metadata"].get("continue"), None);
    assert_eq!(last["metadata"].get("remainingItemCount"), None);
}

/// Nothing that happened between list and watch is missed, and nothing before it is told.
#[tokio::test(flavor = "multi_thread")]
async fn a_watch_goes_on_where_a_page_was() {
    let alone = Alone::start().await;
    store(&alone, ["a", "b", "c"]).await;
    let page = alone.get(&format!("{CONFIG_MAPS}?limit=1")).await.json();
    let revision = page["metadata"]["resourceVersion"].as_str().unwrap();
    store(&alone, ["d"]).await;
    let gone = alone
        .ask("DELETE", &format!("{CONFIG_MAPS}/b"), "", "")
        .await;
    assert_eq!(gone.code, 200);
    let path = format!("{CONFIG_MAPS}?watch=1&timeoutSeconds=1&resourceVersion={revision}");
    let watch = alone.get(&path).await;
    let events: Vec<Value> = watch
        .body
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let told: Vec<_> = events
        .iter()
        .map(|event| {
            (
                event["type"].as_str().unwrap(),
                event["object"]["metadata"]["name"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(told, [("ADDED", "d"), ("DELETED", "b")], "{}", watch.body);
    assert_eq!(events[1]["object"]["data"]["key"], "before");
}

/// Several list while things change, and whoever listed last is the first to watch.
#[tokio::test(flavor = "multi_thread")]
async fn all_who_listed_can_watch_from_there() {
    let alone = Alone::start().await;
    let mut lists = Vec::new();
    for name in ["a", "b", "c"] {
        lists.push(alone.get(CONFIG_MAPS).await.json()["metadata"]["resourceVersion"].clone());
        store(&alone, [name]).await;
    }
    for (from, expected) in lists
        .iter()
        .zip([&["a", "b", "c"][..], &["b", "c"], &["c"]])
        .rev()
    {
        let from = from.as_str().unwrap();
        let path = format!("{CONFIG_MAPS}?watch=1&timeoutSeconds=1&resourceVersion={from}");
        let watch = alone.get(&path).await;
        let events = watch.body.lines().map(serde_json::from_str::<Value>);
        let told: Vec<_> = events
            .map(|event| event.unwrap()["object"]["metadata"]["name"].clone())
            .collect();
        assert_eq!(told, expected, "{}", watch.body);
    }
}

/// Reads a whole answer slowly: nothing until told, then everything.
async fn finish(mut stream: tokio::net::UnixStream) -> Answer {
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    Answer::parse(&text)
}

/// With room for one large object at a time, lists of many are answered in full, one piece after the other.
#[tokio::test(flavor = "multi_thread")]
async fn lists_wider_than_the_budget_are_answered_in_full() {
    let options = Options {
        memory: 4 << 20,
        ..Options::default()
    };
    let alone = Alone::start_with(options).await;
    for number in 0..6 {
        let set = network_set(&format!("s{number}"), 20_000);
        let stored = alone.post(SETS, &set).await;
        assert_eq!(stored.code, 201, "{}", stored.head);
    }
    let mut streams = Vec::new();
    for _ in 0..8 {
        streams.push(tokio::spawn(finish(alone.send("GET", SETS, "", "").await)));
    }
    for stream in streams {
        let list = stream.await.unwrap().json();
        let items = list["items"].as_array().unwrap();
        assert_eq!(items.len(), 6);
        for item in items {
            assert_eq!(item["spec"]["nets"].as_array().unwrap().len(), 20_000);
        }
    }
    let metrics = alone.get("/metrics").await.body;
    let figure = |name: &str| -> i64 {
        let line = metrics.lines().find(|line| line.starts_with(name)).unwrap();
        line.rsplit(' ').next().unwrap().parse().unwrap()
    };
    assert_eq!(figure("apiserver_flowcontrol_memory_limit_bytes "), 4 << 20);
    assert_eq!(figure("apiserver_flowcontrol_current_inqueue_requests "), 0);
    // All that lists held is free again: what is left is that of this request.
    assert!(
        figure("apiserver_flowcontrol_memory_held_bytes ") < 64 << 10,
        "{metrics}"
    );
    assert_eq!(figure("apiserver_flowcontrol_rejected_requests_total "), 0);
}

/// What a client does not take is held for it, until it leaves; health needs nothing of it.
#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_read_keeps_others_out_only_as_long_as_it_stays() {
    let options = Options {
        memory: 1 << 20,
        ..Options::default()
    };
    let alone = Alone::start_with(options).await;
    let stored = alone.post(SETS, &network_set("large", 50_000)).await;
    assert_eq!(stored.code, 201, "{}", stored.head);
    let path = format!("{SETS}/large");
    let mut idle = alone.send("GET", &path, "", "").await;
    // Its answer has begun, and is larger than what a socket takes.
    idle.read_exact(&mut [0; 16]).await.unwrap();
    let waiting = tokio::spawn(finish(alone.send("GET", &path, "", "").await));
    let in_queue = "apiserver_flowcontrol_current_inqueue_requests 1\n";
    while !alone.get("/metrics").await.body.contains(in_queue) {
        assert!(!waiting.is_finished(), "it did not wait");
    }
    assert_eq!(alone.get("/healthz").await.code, 200);
    idle.shutdown().await.unwrap();
    drop(idle);
    let answer = waiting.await.unwrap();
    assert_eq!(answer.code, 200, "{}", answer.head);
}
