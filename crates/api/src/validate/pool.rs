//! IP pools and block affinities.

use ipnet::IpNet;

use crate::kinds::IpPool;
use crate::kinds::block_affinity::BlockAffinitySpec;
use crate::kinds::ip_pool::{IpPoolAllowedUse, IpPoolSpec, IpipMode, VxlanMode};
use crate::net;
use crate::problem::{Path, Problems};

/// Where link-local addresses live; no pool may reach into them.
const LINK_LOCAL: [&str; 2] = ["169.254.0.0/16", "fe80::/10"];

pub(super) fn check(at: &Path<'_>, pool: &IpPoolSpec, problems: &mut Problems) {
    let cidr_at = at.field("cidr");
    if pool.cidr.is_empty() {
        problems.add_missing(&cidr_at, "must be given");
        return;
    }
    let Some(cidr) = net::parse_cidr_or_ip(&pool.cidr) else {
        return;
    };
    let network = cidr.network();
    for reserved in LINK_LOCAL {
        if reserved
            .parse()
            .is_ok_and(|reserved: IpNet| overlaps(&reserved, &network))
        {
            problems.add(
                &cidr_at,
                &pool.cidr,
                format!("must not overlap the link-local range {reserved}"),
            );
        }
    }
    check_block_size(at, pool, &network, problems);
    check_encapsulation(at, pool, cidr.is_ipv4(), problems);
    check_uses(at, pool, problems);
    for (name, selector) in [
        ("nodeSelector", &pool.node_selector),
        ("namespaceSelector", &pool.namespace_selector),
    ] {
        if selector.contains("global(") {
            problems.add(
                &at.field(name),
                selector,
                "global() may not be used in an IP pool",
            );
        }
    }
}

fn check_block_size(at: &Path<'_>, pool: &IpPoolSpec, network: &IpNet, problems: &mut Problems) {
    let (smallest, largest, default) = if network.addr().is_ipv4() {
        (20, 32, 26)
    } else {
        (116, 128, 122)
    };
    let size_at = at.field("blockSize");
    let size = if pool.block_size == 0 {
        default
    } else {
        pool.block_size
    };
    if !(smallest..=largest).contains(&size) {
        problems.add(
            &size_at,
            size,
            format!("must be from {smallest} to {largest}"),
        );
    } else if !pool.disabled && i64::from(network.prefix_len()) > size {
        let rule = format!(
            "must hold at least one block of /{size}; make the pool larger or the blocks smaller"
        );
        problems.add(&at.field("cidr"), &pool.cidr, rule);
    }
}

fn check_encapsulation(at: &Path<'_>, pool: &IpPoolSpec, is_ipv4: bool, problems: &mut Problems) {
    let ipip = pool.ipip_mode.filter(|mode| *mode != IpipMode::Never);
    let vxlan = pool.vxlan_mode.filter(|mode| *mode != VxlanMode::Never);
    if ipip.is_some() && vxlan.is_some() {
        problems.add(
            &at.field("ipipMode"),
            ipip,
            "must be Never, because vxlanMode is set",
        );
    }
    if ipip.is_some() && !is_ipv4 {
        problems.add(&at.field("ipipMode"), ipip, "must be Never in an IPv6 pool");
    }
    if pool.allowed_uses.contains(&IpPoolAllowedUse::LoadBalancer) {
        if ipip.is_some() {
            problems.add(
                &at.field("ipipMode"),
                ipip,
                "must be Never in a LoadBalancer pool",
            );
        }
        if vxlan.is_some() {
            problems.add(
                &at.field("vxlanMode"),
                vxlan,
                "must be Never in a LoadBalancer pool",
            );
        }
    }
}

fn check_uses(at: &Path<'_>, pool: &IpPoolSpec, problems: &mut Problems) {
    let uses = |wanted| pool.allowed_uses.contains(&wanted);
    let uses_at = at.field("allowedUses");
    if uses(IpPoolAllowedUse::LoadBalancer) {
        if uses(IpPoolAllowedUse::Workload) || uses(IpPoolAllowedUse::Tunnel) {
            problems.add(
                &uses_at,
                &pool.allowed_uses,
                "LoadBalancer must stand alone",
            );
        }
        if pool.disable_bgp_export {
            problems.add(
                &at.field("disableBGPExport"),
                true,
                "must not be set in a LoadBalancer pool",
            );
        }
        if pool.node_selector != "all()" {
            let rule = "must be `all()` in a LoadBalancer pool";
            problems.add(&at.field("nodeSelector"), &pool.node_selector, rule);
        }
    }
    if uses(IpPoolAllowedUse::Tunnel) && !pool.namespace_selector.is_empty() {
        let rule = "must not be set in a pool for tunnel addresses; set allowedUses to [Workload]";
        problems.add(
            &at.field("namespaceSelector"),
            &pool.namespace_selector,
            rule,
        );
    }
}

pub(super) fn check_affinity(at: &Path<'_>, spec: &BlockAffinitySpec, problems: &mut Problems) {
    if spec.cidr.is_empty() {
        problems.add(&at.field("cidr"), &spec.cidr, "must be the CIDR of a block");
    }
    if spec.deleted {
        problems.add(
            &at.field("deleted"),
            true,
            "must not be set; it marks a deletion under way",
        );
    }
}

/// Notes what may not change in a pool that exists.
pub fn check_pool_change(old: &IpPool, new: &IpPool, problems: &mut Problems) {
    let root = Path::ROOT;
    let at = root.field("spec");
    let network = |pool: &IpPool| net::parse_cidr_or_ip(&pool.spec.cidr).map(net::Cidr::network);
    if network(old) != network(new) {
        let rule = format!("must stay {}; move to a new pool instead", old.spec.cidr);
        problems.add(&at.field("cidr"), &new.spec.cidr, rule);
    }
    if old.spec.block_size != new.spec.block_size {
        let rule = format!(
            "must stay {}; move to a new pool instead",
            old.spec.block_size
        );
        problems.add(&at.field("blockSize"), new.spec.block_size, rule);
    }
    let is_for_services = |pool: &IpPool| {
        pool.spec
            .allowed_uses
            .contains(&IpPoolAllowedUse::LoadBalancer)
    };
    if is_for_services(old) && !is_for_services(new) {
        let rule = "must stay [LoadBalancer]; move to a new pool instead";
        problems.add(&at.field("allowedUses"), &new.spec.allowed_uses, rule);
    }
}

/// Whether two pools share addresses.
pub fn pools_overlap(one: &IpPool, other: &IpPool) -> bool {
    let network = |pool: &IpPool| net::parse_cidr_or_ip(&pool.spec.cidr).map(net::Cidr::network);
    match (network(one), network(other)) {
        (Some(one), Some(other)) => overlaps(&one, &other),
        _ => false,
    }
}

fn overlaps(one: &IpNet, other: &IpNet) -> bool {
    one.contains(&other.addr()) || other.contains(&one.addr())
}
