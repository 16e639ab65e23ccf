//! The way to other nodes' pods, as the configuration says, and the size of packets that pods may send.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ipnet::IpNet;
use tortie_backoff::{Backoff, Retries};
use tortie_dataplane::{ClusterNetwork, ClusterOptions, MtuOptions};
use tortie_engine::Message;
use tortie_engine::message::{Route, RouteTypes};
use tortie_error::Causes;
use tortie_files::PUBLIC;
use tortie_kernel::route;
use tortie_rules::IpVersion;

use crate::host::versions;
use tortie_config::{Config, Pattern};

/// Between two looks at whether BIRD has the routes that stay only until then.
const LOOK: Backoff = Backoff {
    first: Duration::from_millis(500),
    most: Duration::from_secs(5),
    jitter: 0.0,
};

/// The way to other nodes' pods.
pub(crate) struct Overlay {
    network: ClusterNetwork,
    mtu_pattern: Option<Pattern>,
    /// Where CNI plugins read how large packets may be.
    mtu_file: Option<PathBuf>,
    written: Option<u32>,
    is_due: bool,
    next_look: Option<Instant>,
    looks: Retries,
    /// The IP versions in which packets must be encrypted, which is not done here, and must not go otherwise.
    refused: Vec<IpVersion>,
    /// What leads to pods of other nodes, by its destination.
    remote: BTreeMap<IpNet, Route>,
}

impl Overlay {
    /// For the network namespace of the calling thread.
    pub(crate) fn open(
        config: &Config,
        engine: &tortie_engine::Config,
        mtu_file: Option<&Path>,
    ) -> route::Result<Self> {
        Ok(Self {
            network: ClusterNetwork::open(options(config, engine))?,
            mtu_pattern: config.interfaces.mtu_pattern.clone(),
            mtu_file: mtu_file.map(Path::to_owned),
            written: None,
            is_due: true,
            next_look: None,
            looks: Retries::new(LOOK),
            refused: refused(config),
            remote: BTreeMap::new(),
        })
    }

    /// The engine says something.
    pub(crate) fn on_message(&mut self, message: &Message) {
        match message {
            Message::RouteUpdate(route) if route.types.contains(RouteTypes::REMOTE_WORKLOAD) => {
                self.remote.insert(route.dst, route.clone());
                if self.refused.contains(&version(route.dst)) {
                    let message = Message::RouteRemove(route.dst);
                    self.is_due |= self.network.on_message(&message);
                    return;
                }
            }
            Message::RouteUpdate(Route { dst, .. }) | Message::RouteRemove(dst) => {
                self.remote.remove(dst);
            }
            _ => {}
        }
        self.is_due |= self.network.on_message(message);
    }

    /// The configuration changed.
    pub(crate) fn configure(&mut self, config: &Config, engine: &tortie_engine::Config) {
        self.is_due |= self.network.set_options(options(config, engine));
        let refused = refused(config);
        if refused != self.refused {
            self.refused = refused;
            for route in std::mem::take(&mut self.remote).into_values() {
                self.on_message(&Message::RouteUpdate(route));
            }
        }
        if self.mtu_pattern != config.interfaces.mtu_pattern {
            self.mtu_pattern.clone_from(&config.interfaces.mtu_pattern);
            self.is_due = true;
        }
    }

    /// Interfaces changed, or it is time to look whether somebody else changed something.
    pub(crate) fn distrust_kernel(&mut self) {
        self.network.distrust_kernel();
        self.is_due = true;
    }

    /// Makes in the kernel what has to be made there now.
    pub(crate) fn act(&mut self) {
        let now = Instant::now();
        let is_look_due = self.next_look.is_some_and(|at| at <= now);
        if is_look_due {
            self.next_look = Some(now + self.looks.failed());
        }
        if !self.is_due && !is_look_due {
            return;
        }
        match self.apply() {
            Ok(problems) => {
                self.is_due = !problems.is_empty();
                self.plan_look(now);
                for problem in problems {
                    tracing::warn!(%problem, "A route to another node is missing");
                }
            }
            Err(error) => {
                tracing::error!(error = %Causes(&error), "Routes to other nodes could not be programmed");
            }
        }
    }

    /// When BIRD may have routes that are kept for it, if there are any.
    pub(crate) fn next_look(&self) -> Option<Instant> {
        self.next_look
    }

    fn plan_look(&mut self, now: Instant) {
        if !self.network.is_handing_over() {
            self.looks.reset();
            self.next_look = None;
        } else if self.next_look.is_none() {
            self.next_look = Some(now + self.looks.failed());
        }
    }

    fn apply(&mut self) -> route::Result<Vec<String>> {
        let pattern = self.mtu_pattern.as_ref();
        let mtus = self
            .network
            .mtus(|name| pattern.is_none_or(|pattern| pattern.is_match(name)))?;
        if self.written != Some(mtus.pod) {
            self.write_mtu(mtus.pod);
        }
        self.network.apply(&mtus)
    }

    fn write_mtu(&mut self, mtu: u32) {
        let Some(file) = &self.mtu_file else {
            return;
        };
        match tortie_files::replace(file, mtu.to_string(), PUBLIC) {
            Ok(()) => self.written = Some(mtu),
            Err(error) => {
                tracing::warn!(
                    file = %file.display(),
                    mtu,
                    error = %Causes(&error),
                    "The file from which CNI plugins read the MTU could not be written"
                );
            }
        }
    }
}

/// The IP versions in which nothing may leave for other nodes: it should be encrypted, and would not be.
fn refused(config: &Config) -> Vec<IpVersion> {
    let encap = &config.encap;
    let versions = [
        (IpVersion::V4, "WireguardEnabled", encap.encrypts),
        (IpVersion::V6, "WireguardEnabledV6", encap.encrypts_v6),
    ];
    let mut refused = Vec::new();
    for (version, name, _) in versions.into_iter().filter(|(_, _, encrypts)| *encrypts) {
        if encap.allows_cleartext {
            tracing::warn!(
                parameter = name,
                "Packets go in clear text although encryption is asked for, because of --allow-cleartext"
            );
        } else {
            tracing::error!(
                parameter = name,
                "This agent does not encrypt: pods of other nodes cannot be reached; say --allow-cleartext if packets may \
                 go in clear text"
            );
            refused.push(version);
        }
    }
    refused
}

fn version(net: IpNet) -> IpVersion {
    match net {
        IpNet::V4(_) => IpVersion::V4,
        IpNet::V6(_) => IpVersion::V6,
    }
}

fn options(config: &Config, engine: &tortie_engine::Config) -> ClusterOptions {
    let encap = &config.encap;
    let asked = |mtu: u32| Some(mtu).filter(|mtu| *mtu != 0);
    ClusterOptions {
        hostname: engine.node.clone(),
        versions: versions(config),
        device_protocol: config.routes.protocol,
        workload_prefixes: config.interfaces.prefixes.clone(),
        vxlan_id: encap.vxlan_id,
        vxlan_port: encap.vxlan_port,
        ipip_address: encap.ipip_address.map(Into::into),
        routes_of_ipip: engine.cluster_routes.ipip(),
        mtu: MtuOptions {
            vxlan: asked(encap.vxlan_mtu),
            vxlan_v6: asked(encap.vxlan_mtu_v6),
            ipip: asked(encap.ipip_mtu),
        },
    }
}
