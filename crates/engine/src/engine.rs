//! The engine: takes updates, keeps what they mean for this node, and says what changed.

mod endpoints;
mod flush;
mod items;

use tortie_selector::Labels;

pub(crate) use flush::profile_rules;

use crate::config::Config;
use crate::input::Update;
use crate::items::{ItemBuilder, Items};
use crate::labels::LabelView as _;
use crate::locals::Locals;
use crate::message::Message;
use crate::names::Names;
use crate::network::Network;
use crate::policies::Policies;
use crate::profiles::{ItemLabels, ProfileIdx, Profiles};
use crate::roles::Roles;
use crate::selectors::SelectorIdx;
use crate::sets::Sets;

/// Turns the state of the datastore into what this node must enforce.
///
/// Feed it with [`Self::on_update`], tell it once with [`Self::on_in_sync`] that all there is has been told, and take
/// from [`Self::flush`], whenever it suits, what changed since the last time. What comes out depends only on what the
/// datastore holds, not on the way there.
pub struct Engine {
    pub(crate) config: Config,
    /// Names of labels.
    pub(crate) names: Names,
    /// Names of nodes, orchestrators and interfaces in the keys of items.
    parts: Names,
    pub(crate) items: Items,
    pub(crate) profiles: Profiles,
    pub(crate) sets: Sets,
    pub(crate) policies: Policies,
    pub(crate) locals: Locals,
    roles: Roles,
    pub(crate) network: Network,
    dirty_profiles: Vec<ProfileIdx>,
    is_in_sync: bool,
    has_sent_in_sync: bool,
    builder: ItemBuilder,
    key: Vec<u8>,
    matched: Vec<SelectorIdx>,
}

/// The first byte of an item's key.
const WORKLOAD: u8 = 0;
const HOST: u8 = 1;
const NETWORK_SET: u8 = 2;

impl Engine {
    /// An engine that knows nothing yet.
    pub fn new(config: Config) -> Self {
        Self {
            names: Names::default(),
            parts: Names::default(),
            items: Items::default(),
            profiles: Profiles::default(),
            sets: Sets::new(config.overlaps),
            policies: Policies::default(),
            locals: Locals::default(),
            roles: Roles::new(&config),
            network: Network::new(&config),
            dirty_profiles: Vec::new(),
            is_in_sync: false,
            has_sent_in_sync: false,
            builder: ItemBuilder::default(),
            key: Vec::new(),
            matched: Vec::new(),
            config,
        }
    }

    /// Takes the state of one object.
    pub fn on_update(&mut self, update: &Update) {
        match update {
            Update::Policy(id, policy) => {
                self.policies.update(id, policy.as_ref(), &mut self.names);
            }
            Update::Tier(name, tier) => self.policies.update_tier(name, tier.as_ref()),
            Update::Profile(name, profile) => self.update_profile(name, profile.as_ref()),
            Update::WorkloadEndpoint(key, endpoint) => {
                self.update_workload(key, endpoint.as_deref());
            }
            Update::HostEndpoint(key, endpoint) => self.update_host(key, endpoint.as_deref()),
            Update::NetworkSet(name, set) => self.update_network_set(name, set.as_ref()),
            Update::EndpointSlice(name, slice) => self.sets.slice_update(name, slice.as_ref()),
            Update::Node(name, node) => {
                self.roles
                    .update_node(name, node.as_ref().map(|node| &node.labels));
            }
            Update::BgpPeer(name, peer) => self.roles.update_peer(name, peer.as_ref()),
            Update::LiveMigration(name, migration) => {
                self.roles.update_migration(name, migration.as_ref());
            }
            Update::Configuration(..)
            | Update::Service(..)
            | Update::IpPool(..)
            | Update::Block(..)
            | Update::Cluster(_)
            | Update::BgpConfiguration(_) => {}
        }
        self.network.on_update(update);
    }

    /// All that the datastore held at the start has been told.
    pub fn on_in_sync(&mut self) {
        self.is_in_sync = true;
    }

    /// What changed since the last time, in an order in which it can be applied.
    pub fn flush(&mut self) -> Vec<Message> {
        let mut messages = Vec::new();
        self.flush_to(&mut |message| messages.push(message));
        messages
    }
}

/// Labels of an item as selectors in text form see them.
pub(crate) struct NamedLabels<'a> {
    pub(crate) labels: ItemLabels<'a>,
    pub(crate) names: &'a Names,
}

impl Labels for NamedLabels<'_> {
    fn get(&self, name: &str) -> Option<&str> {
        let value = self.labels.get(self.names.find(name)?)?;
        std::str::from_utf8(value).ok()
    }
}
