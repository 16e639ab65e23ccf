//! Updates as the content of a datastore.

use tortie_engine::Update;
use tortie_engine::input::Cluster;

/// A datastore that nodes may use.
pub(crate) fn ready_cluster() -> Update {
    Update::Cluster(Some(Cluster {
        datastore_ready: Some(true),
        ..Cluster::default()
    }))
}

/// The update that says that an object is absent.
pub(crate) fn absent(update: &Update) -> Update {
    let mut update = update.clone();
    match &mut update {
        Update::Policy(_, value) => *value = None,
        Update::Tier(_, value) => *value = None,
        Update::Profile(_, value) => *value = None,
        Update::WorkloadEndpoint(_, value) => *value = None,
        Update::HostEndpoint(_, value) => *value = None,
        Update::NetworkSet(_, value) => *value = None,
        Update::EndpointSlice(_, value) => *value = None,
        Update::Service(_, value) => *value = None,
        Update::IpPool(_, value) => *value = None,
        Update::Block(_, value) => *value = None,
        Update::Node(_, value) => *value = None,
        Update::Configuration(_, value) => *value = None,
        Update::Cluster(value) => *value = None,
        Update::BgpConfiguration(value) => *value = None,
        Update::BgpPeer(_, value) => *value = None,
        Update::LiveMigration(_, value) => *value = None,
    }
    update
}
