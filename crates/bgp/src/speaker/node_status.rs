//! Keeps those `CalicoNodeStatus` up to date that are about this node, each at its own period.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::runtime::Handle;
use tokio::time::Instant;
use tortie_api::calico_node_status::{
    CalicoNodeStatusSpec, CalicoNodeStatusStatus, NodeStatusClassType,
};
use tortie_api::meta::Time;
use tortie_api::{CalicoNodeStatus, Kind, Resource};
use tortie_client::Client;
use tortie_error::Causes;
use tortie_store::{self as store, Key, Query, Store, StoreSource};
use tortie_sync::{Followers, Pace, State, Topic};

use super::until;
use crate::bird::Result;
use crate::bird::status::{Answers, Families, Sockets, agent, bgp, routes};

/// An update that failed is tried again this soon where the next one is far off.
const AGAIN: Duration = Duration::from_secs(1);

/// The longest period after which the next update is not far off.
const SHORT: Duration = Duration::from_secs(30);

/// What is to be told, and when next.
struct Asked {
    spec: CalicoNodeStatusSpec,
    next: Instant,
}

/// Writes what is asked for about a node, until the caller drops it.
pub(super) async fn keep(node: &str, run_folder: &Path, store: &Arc<dyn Store>) -> ! {
    let client = Client::new(Arc::clone(store));
    let sockets = Sockets::in_folder(run_folder);
    let topic = Topic {
        // Who may not read them is asked for none.
        is_optional: true,
        ..StoreSource::topic::<Resource>(store, Query::all(Kind::CalicoNodeStatus))
    };
    let mut followers = Followers::start(vec![topic], &Pace::default(), None, &Handle::current());
    let mut all: BTreeMap<String, Asked> = BTreeMap::new();
    loop {
        let next = all.values().map(|asked| asked.next).min();
        tokio::select! {
            () = followers.changed() => {}
            () = until(next) => {}
        }
        for object in followers
            .try_recv()
            .into_iter()
            .flat_map(|batch| batch.objects)
        {
            let name = object.name.name().to_owned();
            match object.state {
                State::Present(Resource::CalicoNodeStatus(status)) => {
                    take(&mut all, name, status.spec, node);
                }
                State::Present(_) | State::Absent => {
                    all.remove(&name);
                }
                // What it asked for before is still asked for.
                State::Unreadable(..) => {}
            }
        }
        tell(&client, &sockets, &mut all).await;
    }
}

/// An object is new or changed. Our own updates change nothing here.
fn take(all: &mut BTreeMap<String, Asked>, name: String, spec: CalicoNodeStatusSpec, node: &str) {
    if spec.node != node || period(&spec).is_none() {
        all.remove(&name);
    } else if all.get(&name).is_none_or(|asked| asked.spec != spec) {
        let next = Instant::now();
        all.insert(name, Asked { spec, next });
    }
}

fn period(spec: &CalicoNodeStatusSpec) -> Option<Duration> {
    let seconds = spec.update_period_seconds.filter(|seconds| *seconds > 0);
    seconds.map(|seconds| Duration::from_secs(seconds.into()))
}

/// Updates those whose time has come, all with the same answers of BIRD.
async fn tell(client: &Client, sockets: &Sockets, all: &mut BTreeMap<String, Asked>) {
    let now = Instant::now();
    let mut due: Vec<_> = all
        .iter_mut()
        .filter(|(_, asked)| asked.next <= now)
        .collect();
    if due.is_empty() {
        return;
    }
    let with_routes = due
        .iter()
        .any(|(_, asked)| asked.spec.classes.contains(&NodeStatusClassType::Routes));
    let answers = sockets.ask(with_routes).await;
    for (name, asked) in &mut due {
        let Some(period) = period(&asked.spec) else {
            continue;
        };
        asked.next = now + period;
        let status = status(&asked.spec, &answers);
        let key = Key::global(Kind::CalicoNodeStatus, name.as_str());
        let written = client
            .modify_status(&key, |object: &mut CalicoNodeStatus| {
                object.status = status.clone();
            })
            .await;
        match written {
            // Whoever deleted it is told of by the watch.
            Ok(_) | Err(store::Error::NotFound(_)) => {}
            Err(error) => {
                tracing::warn!(%key, error = %Causes(&error), "The status could not be written");
                if period > SHORT {
                    asked.next = now + AGAIN;
                }
            }
        }
    }
}

/// Of what is not asked for, nothing is told.
fn status(
    spec: &CalicoNodeStatusSpec,
    answers: &Families<Result<Answers>>,
) -> CalicoNodeStatusStatus {
    let mut status = CalicoNodeStatusStatus {
        last_updated: Some(Time(Timestamp::now())),
        ..CalicoNodeStatusStatus::default()
    };
    for class in &spec.classes {
        match class {
            NodeStatusClassType::Agent => status.agent = agent(answers),
            NodeStatusClassType::Bgp => status.bgp = bgp(answers),
            NodeStatusClassType::Routes => status.routes = routes(answers),
        }
    }
    status
}
