//! The pools that a cluster begins with.

use std::net::{IpAddr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use tortie_api::IpPool;
use tortie_api::ip_pool::{IpPoolSpec, IpipMode, VxlanMode};

use crate::startup::autodetect::Version;
use crate::startup::settings::{SettingsError, Variables};

const NAME_V4: &str = "default-ipv4-ippool";
const NAME_V6: &str = "default-ipv6-ippool";

/// The pools that a cluster begins with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolSettings {
    v4: Option<Pool>,
    v6: Option<Pool>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Pool {
    /// None: one is chosen.
    cidr: Option<IpNet>,
    block_size: u8,
    ipip: IpipMode,
    vxlan: VxlanMode,
    nat_outgoing: bool,
    node_selector: String,
    disable_bgp_export: bool,
}

impl PoolSettings {
    pub(crate) fn read(read: &Variables<'_>) -> Result<Self, SettingsError> {
        Ok(Self {
            v4: pool(read, Version::V4)?,
            v6: pool(read, Version::V6)?,
        })
    }

    /// The pool of an IP version for a cluster that has none. `addresses` are the machine's own, which a pool whose
    /// network nobody chose must not contain; `cluster` is the network that the cluster was made with.
    pub fn pool(
        &self,
        version: Version,
        addresses: &[IpAddr],
        cluster: Option<IpNet>,
    ) -> Option<IpPool> {
        let (pool, name) = match version {
            Version::V4 => (self.v4.as_ref()?, NAME_V4),
            Version::V6 => (self.v6.as_ref()?, NAME_V6),
        };
        let cidr = pool.cidr.or(cluster).or_else(|| match version {
            Version::V4 => free_network(addresses),
            Version::V6 => Some(random_local_network()),
        })?;
        let spec = IpPoolSpec {
            cidr: cidr.trunc().to_string(),
            block_size: i64::from(pool.block_size),
            ipip_mode: Some(pool.ipip),
            vxlan_mode: Some(pool.vxlan),
            nat_outgoing: pool.nat_outgoing,
            node_selector: pool.node_selector.clone(),
            disable_bgp_export: pool.disable_bgp_export,
            ..IpPoolSpec::default()
        };
        Some(IpPool::new("", name, spec))
    }
}

fn pool(read: &Variables<'_>, version: Version) -> Result<Option<Pool>, SettingsError> {
    let prefix = match version {
        Version::V4 => "CALICO_IPV4POOL_",
        Version::V6 => "CALICO_IPV6POOL_",
    };
    let name = |end: &str| format!("{prefix}{end}");
    let cidr_name = name("CIDR");
    if read
        .text(&cidr_name)
        .is_some_and(|text| text.eq_ignore_ascii_case("none"))
    {
        return Ok(None);
    }
    let cidr: Option<IpNet> = read.parsed(&cidr_name)?;
    if cidr.is_some_and(|cidr| !version.has(&cidr.addr())) {
        return Err(read.wrong(&cidr_name, format!("expected an {version} network")));
    }
    let (sizes, usual_size) = match version {
        Version::V4 => (20..=32, 26),
        Version::V6 => (116..=128, 122),
    };
    let size_name = name("BLOCK_SIZE");
    let block_size = read.parsed(&size_name)?.unwrap_or(usual_size);
    if !sizes.contains(&block_size) {
        let (least, most) = (sizes.start(), sizes.end());
        return Err(read.wrong(&size_name, format!("expected {least} to {most}")));
    }
    Ok(Some(Pool {
        cidr,
        block_size,
        ipip: match (version, mode(read, &name("IPIP"))?) {
            (Version::V6, _) | (_, Mode::Never) => IpipMode::Never,
            (_, Mode::Always) => IpipMode::Always,
            (_, Mode::CrossSubnet) => IpipMode::CrossSubnet,
        },
        vxlan: match mode(read, &name("VXLAN"))? {
            Mode::Never => VxlanMode::Never,
            Mode::Always => VxlanMode::Always,
            Mode::CrossSubnet => VxlanMode::CrossSubnet,
        },
        nat_outgoing: read
            .truth(&name("NAT_OUTGOING"))?
            .unwrap_or(version == Version::V4),
        node_selector: read
            .text(&name("NODE_SELECTOR"))
            .unwrap_or("all()")
            .to_owned(),
        disable_bgp_export: read.is_true(&name("DISABLE_BGP_EXPORT"))?,
    }))
}

enum Mode {
    Never,
    Always,
    CrossSubnet,
}

fn mode(read: &Variables<'_>, name: &str) -> Result<Mode, SettingsError> {
    let text = read.text(name).unwrap_or("never").to_ascii_lowercase();
    match text.as_str() {
        "off" | "never" => Ok(Mode::Never),
        "always" => Ok(Mode::Always),
        "crosssubnet" | "cross-subnet" => Ok(Mode::CrossSubnet),
        _ => Err(read.wrong(name, "expected Never, Always or CrossSubnet")),
    }
}

/// The first of the usual networks that has none of the machine's addresses.
fn free_network(addresses: &[IpAddr]) -> Option<IpNet> {
    let usual = std::iter::once([192, 168]).chain((16..=31).map(|second| [172, second]));
    let mut nets = usual.filter_map(|[a, b]| Ipv4Net::new([a, b, 0, 0].into(), 16).ok());
    let is_free = |net: &Ipv4Net| {
        let inside =
            |address: &IpAddr| matches!(address, IpAddr::V4(address) if net.contains(address));
        !addresses.iter().any(inside)
    };
    nets.find(is_free).map(IpNet::V4)
}

/// A network that nobody else is likely to have (RFC 4193).
fn random_local_network() -> IpNet {
    let mut bytes = [0; 16];
    bytes[..6].copy_from_slice(&uuid::Uuid::new_v4().as_bytes()[..6]);
    bytes[0] = 0xfd;
    IpNet::V6(Ipv6Net::new_assert(Ipv6Addr::from(bytes), 48))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::net::IpAddr;

    use super::{PoolSettings, Version};
    use crate::startup::settings::Settings;

    fn pools(variables: &[(&str, &str)]) -> PoolSettings {
        let variables: BTreeMap<String, String> = variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        Settings::from_environment(&variables, "n")
            .unwrap()
            .pools
            .unwrap()
    }

    #[test]
    fn a_network_that_nobody_chose_is_free() {
        let cidr = |addresses: &[&str]| {
            let addresses: Vec<IpAddr> = addresses.iter().map(|a| a.parse().unwrap()).collect();
            pools(&[])
                .pool(Version::V4, &addresses, None)
                .unwrap()
                .spec
                .cidr
        };
        assert_eq!(cidr(&[]), "192.168.0.0/16");
        assert_eq!(cidr(&["192.168.7.1"]), "172.16.0.0/16");
        assert_eq!(cidr(&["192.168.7.1", "172.16.0.1"]), "172.17.0.0/16");
        let chosen = "10.244.0.0/16".parse().unwrap();
        let pool = pools(&[]).pool(Version::V4, &[], Some(chosen)).unwrap();
        assert_eq!(pool.spec.cidr, "10.244.0.0/16");
        let v6 = |()| pools(&[]).pool(Version::V6, &[], None).unwrap().spec;
        assert!(v6(()).cidr.starts_with("fd") && v6(()).cidr.ends_with("::/48"));
        assert_ne!(v6(()).cidr, v6(()).cidr);
        assert!(!v6(()).nat_outgoing && v6(()).block_size == 122);
    }

    #[test]
    fn a_pool_is_as_asked_for_or_absent() {
        let settings = pools(&[
            ("CALICO_IPV4POOL_CIDR", "10.65.0.0/16"),
            ("CALICO_IPV4POOL_VXLAN", "CrossSubnet"),
            ("CALICO_IPV4POOL_NAT_OUTGOING", "false"),
            ("CALICO_IPV4POOL_BLOCK_SIZE", "28"),
            ("CALICO_IPV4POOL_NODE_SELECTOR", "has(a)"),
            ("CALICO_IPV6POOL_CIDR", "none"),
        ]);
        let pool = settings.pool(Version::V4, &[], None).unwrap();
        assert_eq!(pool.metadata.name, "default-ipv4-ippool");
        assert_eq!((pool.spec.block_size, pool.spec.nat_outgoing), (28, false));
        assert_eq!(pool.spec.node_selector, "has(a)");
        assert_eq!(pool.spec.vxlan_mode, Some(super::VxlanMode::CrossSubnet));
        assert_eq!(settings.pool(Version::V6, &[], None), None);
    }
}
