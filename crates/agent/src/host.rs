//! What the configuration means for the machine: which data plane, for which IP versions, and which interfaces count.

use std::collections::BTreeMap;
use std::sync::Arc;

use tortie_dataplane::iptables::IptablesDriver;
use tortie_dataplane::nftables::NftablesDriver;
use tortie_dataplane::{Driver, InterfaceState, LocalNetwork, RouteOptions};
use tortie_rules::{Dataplane, IpVersion};

use crate::derive::iptables_options;
use tortie_config::{Config, NftablesMode};

/// The data plane that the configuration asks for, or that the kernel has.
pub fn choose(config: &Config) -> Dataplane {
    match config.tables.nftables_mode {
        NftablesMode::Enabled => Dataplane::Nftables,
        NftablesMode::Auto if NftablesDriver::is_usable() => Dataplane::Nftables,
        NftablesMode::Auto | NftablesMode::Disabled => Dataplane::Iptables,
    }
}

/// The IP versions that rules are made for.
pub fn versions(config: &Config) -> Vec<IpVersion> {
    let mut versions = vec![IpVersion::V4];
    versions.extend(config.ipv6.then_some(IpVersion::V6));
    versions
}

/// Drivers by IP version.
pub type Drivers = Vec<(IpVersion, Box<dyn Driver>)>;

/// The drivers of a data plane, for the network namespace of the calling thread.
pub fn drivers(config: &Config, dataplane: Dataplane) -> Result<Drivers, tortie_dataplane::Error> {
    let drivers = versions(config).into_iter().map(|version| {
        let driver: Box<dyn Driver> = match dataplane {
            Dataplane::Nftables => Box::new(NftablesDriver::open(version)?),
            Dataplane::Iptables => {
                let options = iptables_options(config, version);
                Box::new(IptablesDriver::new(&options)?)
            }
        };
        Ok((version, driver))
    });
    drivers.collect()
}

/// The host's side of workloads, for the network namespace of the calling thread.
pub fn local_network(config: &Config) -> tortie_kernel::route::Result<LocalNetwork> {
    let routes = &config.routes;
    LocalNetwork::open(RouteOptions {
        protocol: routes.protocol,
        metrics: [routes.normal_priority_v4, routes.normal_priority_v6],
        sources: [
            routes.device_source.map(Into::into),
            routes.device_source_v6.map(Into::into),
        ],
        ipv6: config.ipv6,
        remove_foreign: routes.remove_external,
    })
}

/// The interfaces of the machine that count.
pub fn interfaces(
    config: &Config,
    network: &mut LocalNetwork,
) -> tortie_kernel::route::Result<BTreeMap<Arc<str>, InterfaceState>> {
    let mut interfaces = network.interfaces()?;
    let excluded = &config.interfaces.exclude;
    interfaces.retain(|name, _| !excluded.iter().any(|pattern| pattern.is_match(name)));
    Ok(interfaces)
}
