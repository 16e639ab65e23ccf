//! Policies, sets and endpoints that change all the time, and never what is promised about the watched packets.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::{Value, json};
use tortie_api::Resource;
use tortie_testkit::Random;

use crate::killed::objects::{GUESTS, OTHERS, endpoint, network_set, policy, rule};
use crate::killed::site::{Datastore, Site};

/// The time between two changes.
const INTERVAL: Duration = Duration::from_millis(2);

/// How many there are of each kind of object that comes and goes.
const VARIETY: u64 = 8;

/// Changes that go on until this is dropped.
pub(crate) struct Churn {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    is_over: AtomicBool,
    /// Held while something is being changed.
    changing: Mutex<()>,
    changes: AtomicU64,
}

impl Churn {
    pub(crate) fn start(site: &Site) -> Self {
        let shared = Arc::new(Shared::default());
        let (for_thread, datastore) = (Arc::clone(&shared), Arc::clone(&site.datastore));
        let thread = thread::spawn(move || {
            let mut random = Random::new(1);
            while !for_thread.is_over.load(Ordering::Acquire) {
                let changing = for_thread.lock();
                change(&mut random, &datastore);
                drop(changing);
                for_thread.changes.fetch_add(1, Ordering::AcqRel);
                thread::sleep(INTERVAL);
            }
        });
        Self {
            shared,
            thread: Some(thread),
        }
    }

    /// Does something while nothing changes.
    pub(crate) fn while_paused(&self, work: impl FnOnce()) {
        let _paused = self.shared.lock();
        work();
    }

    /// Ends it, and asserts that so much was changed.
    pub(crate) fn end(mut self, least: u64) {
        self.shared.is_over.store(true, Ordering::Release);
        self.thread.take().unwrap().join().unwrap();
        let changes = self.shared.changes.load(Ordering::Acquire);
        assert!(changes >= least, "there were only {changes} changes");
    }
}

impl Drop for Churn {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, ()> {
        let locked = self.changing.lock();
        locked.unwrap_or_else(PoisonError::into_inner)
    }
}

fn change(random: &mut Random, datastore: &Datastore) {
    let resource = match random.below(3) {
        0 => some_policy(random),
        1 => some_networks(random),
        _ => some_endpoint(random),
    };
    if random.once_in(4) {
        datastore.delete(&resource);
    } else {
        datastore.put(resource);
    }
}

/// A policy for the server, before or after the one that decides about the watched packets.
fn some_policy(random: &mut Random) -> Resource {
    let name = format!("more-{}", random.below(VARIETY));
    let rules: Vec<Value> = (0..random.below(6)).map(|_| some_rule(random)).collect();
    let spec = json!({
        "order": 90 + random.below(20),
        "selector": if random.once_in(3) { "all()" } else { "role == 'server'" },
        "types": ["Ingress"],
        "ingress": rules,
    });
    policy(&name, &spec)
}

/// A rule for ports that nobody watches.
fn some_rule(random: &mut Random) -> Value {
    let action = ["Allow", "Deny", "Log"][below(random, 3)];
    let protocol = ["TCP", "UDP"][below(random, 2)];
    let set = [None, Some(GUESTS), Some(OTHERS), Some("few")][below(random, 4)];
    let port = u16::try_from(9000 + random.below(50)).unwrap();
    rule(action, protocol, port, set)
}

/// Members of one of the sets: single addresses, and networks that may lie in one another. Only guests may have the
/// client's address among them; the client belongs to the same sets with and without them.
fn some_networks(random: &mut Random) -> Resource {
    let number = random.below(VARIETY);
    let list = [GUESTS, OTHERS, "few"][below(random, 3)];
    let mut networks: Vec<String> = (0..random.below(30))
        .map(|_| {
            let length = [32, 32, 30, 24][below(random, 4)];
            let (third, fourth) = (random.below(4), random.below(64) * 4);
            let fourth = if length == 24 { 0 } else { fourth };
            format!("172.16.{third}.{fourth}/{length}")
        })
        .collect();
    if list == GUESTS && random.once_in(2) {
        networks.push("10.65.0.0/24".to_owned());
    }
    if random.once_in(2) {
        networks.push(format!("fd00:16::{number}/128"));
    }
    network_set(&format!("networks-{number}"), &networks, &[("list", list)])
}

/// A pod that the node has no interface for.
fn some_endpoint(random: &mut Random) -> Resource {
    let number = random.below(VARIETY);
    let networks = [format!("10.65.1.{}/32", 1 + random.below(200))];
    let list = [GUESTS, OTHERS, "few"][below(random, 3)];
    let role = ["server", "client"][below(random, 2)];
    endpoint(
        &format!("more{number}"),
        &format!("calimore{number}"),
        &networks,
        &[("list", list), ("role", role)],
    )
}

fn below(random: &mut Random, limit: u64) -> usize {
    usize::try_from(random.below(limit)).unwrap()
}
