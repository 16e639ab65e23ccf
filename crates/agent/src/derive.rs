//! What the configuration means for the engine and for iptables.

use tortie_dataplane::iptables;
use tortie_engine::{Overlaps, RoutesSent};
use tortie_rules::{Dataplane, IpVersion};

use tortie_config::{ChainInsertMode, Config, IptablesBackend};

/// What the engine is told before it starts.
pub fn engine_config(config: &Config, node: &str, dataplane: Dataplane) -> tortie_engine::Config {
    tortie_engine::Config {
        overlaps: match dataplane {
            Dataplane::Nftables => Overlaps::AddressesSent,
            Dataplane::Iptables => Overlaps::Sent,
        },
        routes_sent: RoutesSent::WithAnyPool,
        ..tortie_engine::Config::new(node, config)
    }
}

/// How iptables is driven.
pub(crate) fn iptables_options(config: &Config, ip_version: IpVersion) -> iptables::Options {
    let tables = &config.tables;
    iptables::Options {
        backend: match tables.iptables_backend {
            IptablesBackend::Legacy => iptables::Backend::Only(iptables::Variant::Legacy),
            IptablesBackend::Nft => iptables::Backend::Only(iptables::Variant::Nft),
            IptablesBackend::Auto => iptables::Backend::Auto,
        },
        insert_mode: match tables.chain_insert_mode {
            ChainInsertMode::Insert => iptables::InsertMode::Insert,
            ChainInsertMode::Append => iptables::InsertMode::Append,
        },
        lock_probe_interval: tables.iptables_lock_probe,
        max_ipset_size: config.ip_sets.max_size,
        ..iptables::Options::new(ip_version)
    }
}
