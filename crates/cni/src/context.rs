//! One request with all that is needed to serve it.

use std::net::IpAddr;

use tortie_api::names::DEFAULT_VETH_PREFIX;
use tortie_client::connect::{Source, interface_prefix};

use crate::config::{self, NetworkConfig};
use crate::datastore::Datastore;
use crate::endpoint::Endpoints;
use crate::error::Result;
use crate::identity::Identity;
use crate::network::Waiting;
use crate::request::Request;

/// One request with all that is needed to serve it.
#[derive(Clone)]
pub struct Context<'a> {
    /// What is asked.
    pub request: &'a Request,
    /// The configuration.
    pub config: &'a NetworkConfig,
    /// The configuration as it came, for other plugins.
    pub raw: &'a [u8],
    pub datastore: Datastore,
    /// The variables of the environment.
    pub environment: Source<'a>,
    /// Who the request is about.
    pub identity: Identity,
    /// What names of the interfaces of pods start with.
    pub prefix: String,
    /// Who waits until the kernel is done with an interface that is deleted.
    pub waiting: Waiting,
}

impl<'a> Context<'a> {
    /// A request to be served with a datastore that is open already.
    pub fn new(
        request: &'a Request,
        config: &'a NetworkConfig,
        raw: &'a [u8],
        datastore: Datastore,
        environment: Source<'a>,
    ) -> Result<Self> {
        let node = config::node_name(config)?;
        Ok(Self {
            request,
            config,
            raw,
            datastore,
            environment,
            identity: Identity::of(request, &node),
            waiting: Waiting::Here,
            prefix: interface_prefix(environment).unwrap_or_else(|| DEFAULT_VETH_PREFIX.to_owned()),
        })
    }

    pub(crate) fn endpoints(&self) -> Endpoints<'_> {
        Endpoints::of(&self.datastore)
    }

    /// The name of the interface on the node's side.
    pub(crate) fn host_interface(&self) -> String {
        self.identity.host_interface(&self.prefix)
    }

    /// The handle of the container's addresses.
    pub(crate) fn handle(&self) -> String {
        self.identity.handle(&self.config.name)
    }

    /// Whether the request is about a pod and Kubernetes can be asked about its namespace.
    pub(crate) fn knows_namespace(&self) -> bool {
        self.identity.pod.is_some()
            && (self.config.is_kubernetes_policy()
                || self.datastore.cluster.is_some()
                || !self.config.kubernetes.kubeconfig.is_empty())
    }
}

/// The address as the network that has only it, as endpoints have them.
pub(crate) fn as_network(address: IpAddr) -> String {
    ipnet::IpNet::from(address).to_string()
}
