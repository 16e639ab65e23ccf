//! Keeps a node's place in the cluster: its resource with its addresses, and the addresses of its tunnel devices.
//!
//! A node that is deleted and registers again, by hand or by a new kubelet, comes back without what its start wrote, and
//! other nodes find no way to its pods. What was seen of it before is written again.

use std::time::Duration;

use async_trait::async_trait;
use tokio::runtime::Handle;
use tokio::time::Instant;
use tortie_api::node::NodeSpec;
use tortie_api::{Node, Resource};
use tortie_backoff::Backoff;
use tortie_client::Client;
use tortie_error::Causes;
use tortie_ipam::Ipam;
use tortie_store::{self as store, Key, Kind, Query, StoreSource};
use tortie_sync::{Followers, Pace};

use crate::startup::tunnel::{self, Outcome};

/// The pause after something failed.
const PAUSE: Duration = Duration::from_secs(5);

/// Several changes that come together are looked at together.
const SETTLE: Duration = Duration::from_millis(100);

/// How long to wait before a node is registered that was registered not long before: somebody keeps deleting it.
const AGAIN: Backoff = Backoff {
    first: Duration::from_secs(1),
    most: Duration::from_mins(5),
    jitter: 0.1,
};

/// After so long, a deletion is not one of a row.
const QUIET: Duration = Duration::from_mins(10);

/// What went wrong, for people to read.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Registers a node.
#[async_trait]
pub trait Registrar: Send + Sync {
    /// Whether it makes the node's resource. If not, it adds to one that others make.
    fn makes_node(&self) -> bool;

    /// Whether the node was registered from this machine before.
    fn was_registered(&self) -> bool;

    /// Makes or completes the node's resource, with the addresses that it was last seen with, if it was seen.
    async fn register(&self, last: Option<&NodeSpec>) -> Result<(), Failure>;
}

/// Keeps what the node and its tunnels should have.
struct Keeper<'a> {
    client: &'a Client,
    ipam: &'a Ipam,
    node: &'a str,
    registrar: Option<&'a dyn Registrar>,
    /// What the node was last seen with, or made with.
    last: Option<NodeSpec>,
    /// When it was last registered, and how often in a row.
    registered: Option<(Instant, u32)>,
}

/// Gives the node what it lost, and its tunnels their addresses, and again whenever pools or the node change, until the
/// caller drops it. Without a registrar, only tunnels are looked after.
pub async fn follow(
    client: &Client,
    ipam: &Ipam,
    node: &str,
    registrar: Option<&dyn Registrar>,
) -> ! {
    let queries = [
        Query::all(Kind::IpPool),
        Query::from(&Key::global(Kind::Node, node)),
    ];
    let topics = queries.map(|query| StoreSource::topic::<Resource>(client.store(), query));
    let pace = Pace::default();
    let mut changes = Followers::start(topics.into(), &pace, None, &Handle::current());
    let mut keeper = Keeper {
        client,
        ipam,
        node,
        registrar,
        last: None,
        registered: None,
    };
    loop {
        changes.recv().await;
        tokio::time::sleep(SETTLE).await;
        while let Err(error) = keeper.reconcile().await {
            tracing::warn!(error = %Causes(&*error), retry_in = ?PAUSE, "The node could not be kept up to date; trying again");
            tokio::time::sleep(PAUSE).await;
        }
    }
}

impl<'a> Keeper<'a> {
    async fn reconcile(&mut self) -> Result<(), Failure> {
        if self.is_registered().await? {
            self.give_addresses().await?;
        }
        Ok(())
    }

    /// Whether the node has a resource, perhaps after registering it.
    async fn is_registered(&mut self) -> Result<bool, Failure> {
        let Some((registrar, found)) = self.find_loss().await? else {
            return Ok(self.last.is_some());
        };
        if found.is_none() && !registrar.makes_node() {
            tracing::warn!(
                node = self.node,
                "The node's resource is gone; waiting until it exists again"
            );
            return Ok(false);
        }
        let in_a_row = match self.registered {
            Some((at, count)) if at.elapsed() < QUIET => {
                let pause = AGAIN.after(count);
                tracing::warn!(
                    node = self.node,
                    retry_in = ?pause,
                    "The node lost its address again; waiting before it is given back"
                );
                tokio::time::sleep(pause).await;
                if self.find_loss().await?.is_none() {
                    return Ok(self.last.is_some());
                }
                count + 1
            }
            _ => 0,
        };
        let what = if found.is_some() {
            "its address"
        } else {
            "its resource"
        };
        tracing::warn!(
            node = self.node,
            lost = what,
            "The node is registered again"
        );
        registrar.register(self.last.as_ref()).await?;
        self.registered = Some((Instant::now(), in_a_row));
        // Where it has no address now, it has none to lose.
        self.last = self.read().await?.map(|node| node.spec);
        Ok(self.last.is_some())
    }

    /// If the node lacks what it had: who is to register it, and what there is of it.
    async fn find_loss(&mut self) -> Result<Option<(&'a dyn Registrar, Option<Node>)>, Failure> {
        let found = self.read().await?;
        let Some(registrar) = self.registrar else {
            self.last = found.map(|node| node.spec);
            return Ok(None);
        };
        let has = found.as_ref().map(|node| addresses(&node.spec));
        let has = has.unwrap_or_default();
        let lacks = match &self.last {
            Some(last) => {
                let mut pairs = addresses(last).into_iter().zip(has);
                found.is_none() || pairs.any(|(had, has)| !had.is_empty() && has.is_empty())
            }
            None => registrar.was_registered() && has.iter().all(String::is_empty),
        };
        if lacks {
            return Ok(Some((registrar, found)));
        }
        self.last = found.map(|node| node.spec);
        Ok(None)
    }

    async fn read(&self) -> Result<Option<Node>, Failure> {
        let key = Key::global(Kind::Node, self.node);
        match self.client.get(&key).await {
            Ok(Resource::Node(node)) => Ok(Some(*node)),
            Ok(_) | Err(store::Error::NotFound(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    async fn give_addresses(&self) -> Result<(), Failure> {
        for (tunnel, outcome) in tunnel::ensure(self.client, self.ipam, self.node).await? {
            match outcome {
                Outcome::NotNeeded | Outcome::Kept(_) => {}
                Outcome::Assigned(address) => {
                    tracing::info!(device = tunnel.name(), %address, "A tunnel device has an address");
                }
                Outcome::Released(address) => {
                    tracing::info!(device = tunnel.name(), %address, "A tunnel device needs its address no more");
                }
            }
        }
        Ok(())
    }
}

/// The addresses by which others reach the node: IPv4, IPv6.
fn addresses(spec: &NodeSpec) -> [String; 2] {
    let bgp = spec.bgp.clone().unwrap_or_default();
    [bgp.ipv4_address, bgp.ipv6_address]
}
