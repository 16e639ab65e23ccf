//! Which of a machine's addresses is the node's.

use std::fmt;
use std::io;
use std::net::{IpAddr, ToSocketAddrs as _, UdpSocket};
use std::str::FromStr;

use ipnet::IpNet;
use regex::Regex;
use tortie_kernel::route;

/// Interfaces that are never those that other nodes see: of containers, bridges and tunnels.
const NOT_OF_THE_HOST: &str = r"^(docker.*|cbr.*|dummy.*|podman.*|virbr.*|lxcbr.*|veth.*|lo|br-.*|cali.*|tunl.*|flannel.*|kube-ipvs.*|cni.*|vxlan\.calico.*|vxlan-v6\.calico.*|wireguard\.cali.*|wg-v6\.cali.*|nodelocaldns.*)$";

/// Any port: nothing is sent there.
const SOME_PORT: u16 = 80;

/// How the address is found.
#[derive(Debug, Clone)]
pub enum Method {
    /// The first address of the first interface that is the host's own.
    FirstFound,
    /// What the Kubernetes node says.
    KubernetesInternalIp,
    /// The address that packets to this machine leave from.
    CanReach(String),
    /// The first address of an interface with such a name.
    Interface(Regex),
    /// The first address of an interface that is the host's own and has no such name.
    SkipInterface(Regex),
    /// The first address in one of these networks.
    Cidr(Vec<IpNet>),
}

/// A method that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{method}` is not a way to find the node's address: {reason}; expected first-found, kubernetes-internal-ip, \
     can-reach=ADDRESS, interface=REGEX,…, skip-interface=REGEX,… or cidr=NETWORK,…"
)]
pub struct MethodError {
    method: String,
    reason: String,
}

/// An interface of the machine with its addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    pub name: String,
    /// Its addresses with the length of their networks.
    pub addresses: Vec<IpNet>,
}

impl Interface {
    /// Those of this machine, in the order of their numbers.
    pub fn all() -> Result<Vec<Self>, route::Error> {
        let links = route::Socket::open()?.links()?.into_iter();
        let interfaces = links.map(|link| Self {
            name: link.name,
            addresses: link.addresses,
        });
        Ok(interfaces.collect())
    }
}

/// An IP version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Version {
    /// Whether the address is of this version.
    pub fn has(self, address: &IpAddr) -> bool {
        matches!(address, IpAddr::V4(_)) == (self == Self::V4)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        })
    }
}

impl FromStr for Method {
    type Err = MethodError;

    fn from_str(text: &str) -> Result<Self, MethodError> {
        let wrong = |reason: String| MethodError {
            method: text.to_owned(),
            reason,
        };
        let patterns = |list: &str| {
            let joined = list.split(',').collect::<Vec<_>>().join("|");
            Regex::new(&joined).map_err(|error| wrong(format!("`{list}` is no pattern: {error}")))
        };
        Ok(match text.split_once('=') {
            None if text.is_empty() || text == "first-found" => Self::FirstFound,
            None if text == "kubernetes-internal-ip" => Self::KubernetesInternalIp,
            Some(("can-reach", place)) if !place.is_empty() => Self::CanReach(place.to_owned()),
            Some(("interface", list)) if !list.is_empty() => Self::Interface(patterns(list)?),
            Some(("skip-interface", list)) if !list.is_empty() => {
                Self::SkipInterface(patterns(list)?)
            }
            Some(("cidr", list)) => {
                let nets = list.split(',').map(|net| {
                    net.trim()
                        .parse()
                        .map_err(|_| wrong(format!("`{net}` is no network")))
                });
                Self::Cidr(nets.collect::<Result<_, _>>()?)
            }
            _ => return Err(wrong("it is unknown".to_owned())),
        })
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FirstFound => f.write_str("first-found"),
            Self::KubernetesInternalIp => f.write_str("kubernetes-internal-ip"),
            Self::CanReach(place) => write!(f, "can-reach={place}"),
            Self::Interface(names) => write!(f, "interface={names}"),
            Self::SkipInterface(names) => write!(f, "skip-interface={names}"),
            Self::Cidr(nets) => {
                let nets: Vec<String> = nets.iter().map(ToString::to_string).collect();
                write!(f, "cidr={}", nets.join(","))
            }
        }
    }
}

/// The node's address of an IP version with the length of its network, if there is one.
pub fn detect(
    method: &Method,
    version: Version,
    interfaces: &[Interface],
    internal: &[IpAddr],
) -> io::Result<Option<IpNet>> {
    let of_host =
        Regex::new(NOT_OF_THE_HOST).map_err(|error| io::Error::other(error.to_string()))?;
    let first = |accepts: &dyn Fn(&Interface, &IpNet) -> bool| {
        let pairs = interfaces
            .iter()
            .flat_map(|interface| interface.addresses.iter().map(move |net| (interface, net)));
        let mut pairs = pairs.filter(|(_, net)| version.has(&net.addr()) && is_global(net));
        pairs
            .find(|(interface, net)| accepts(interface, net))
            .map(|(_, net)| *net)
    };
    Ok(match method {
        Method::FirstFound => first(&|interface, _| !of_host.is_match(&interface.name)),
        Method::Interface(names) => first(&|interface, _| names.is_match(&interface.name)),
        Method::SkipInterface(names) => first(&|interface, _| {
            !of_host.is_match(&interface.name) && !names.is_match(&interface.name)
        }),
        Method::Cidr(nets) => first(&|_, net| nets.iter().any(|all| all.contains(&net.addr()))),
        Method::KubernetesInternalIp => internal
            .iter()
            .find(|address| version.has(address))
            .map(|address| with_prefix(*address, interfaces)),
        Method::CanReach(place) => {
            source_towards(place, version)?.map(|address| with_prefix(address, interfaces))
        }
    })
}

/// The address with the length of its network, if an interface has it; as a network of its own otherwise.
pub fn with_prefix(address: IpAddr, interfaces: &[Interface]) -> IpNet {
    let mut all = interfaces.iter().flat_map(|interface| &interface.addresses);
    all.find(|net| net.addr() == address)
        .map_or(IpNet::from(address), |net| *net)
}

/// The address that packets to a machine leave from.
fn source_towards(place: &str, version: Version) -> io::Result<Option<IpAddr>> {
    let found = (place, SOME_PORT).to_socket_addrs()?;
    for target in found.filter(|target| version.has(&target.ip())) {
        let any = match version {
            Version::V4 => "0.0.0.0:0",
            Version::V6 => "[::]:0",
        };
        // Connecting a UDP socket sends nothing: the kernel only looks for the way.
        let socket = UdpSocket::bind(any)?;
        if socket.connect(target).is_ok() {
            return Ok(Some(socket.local_addr()?.ip()));
        }
    }
    Ok(None)
}

fn is_global(net: &IpNet) -> bool {
    match net.addr() {
        IpAddr::V4(address) => {
            !address.is_unspecified()
                && !address.is_loopback()
                && !address.is_multicast()
                && !address.is_broadcast()
                && !address.is_link_local()
        }
        IpAddr::V6(address) => {
            !address.is_unspecified()
                && !address.is_loopback()
                && !address.is_multicast()
                && !address.is_unicast_link_local()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Interface, Method, Version, detect};

    fn interfaces() -> Vec<Interface> {
        let interface = |name: &str, addresses: &[&str]| Interface {
            name: name.to_owned(),
            addresses: addresses.iter().map(|net| net.parse().unwrap()).collect(),
        };
        vec![
            interface("lo", &["127.0.0.1/8", "::1/128"]),
            interface("docker0", &["172.17.0.1/16"]),
            interface("eth0", &["169.254.7.7/16", "fe80::1/64", "192.0.2.1/24"]),
            interface("eth1", &["198.51.100.1/25", "2001:db8::1/64"]),
            interface("cali123", &["10.65.0.1/32"]),
        ]
    }

    #[track_caller]
    fn check(method: &str, version: Version, expected: Option<&str>) {
        let method: Method = method.parse().unwrap();
        let internal = [
            "198.51.100.1".parse().unwrap(),
            "2001:db8::9".parse().unwrap(),
        ];
        let found = detect(&method, version, &interfaces(), &internal).unwrap();
        assert_eq!(
            found.map(|net| net.to_string()).as_deref(),
            expected,
            "{method}"
        );
    }

    #[test]
    fn each_method_finds_its_address() {
        check("first-found", Version::V4, Some("192.0.2.1/24"));
        check("first-found", Version::V6, Some("2001:db8::1/64"));
        check("", Version::V4, Some("192.0.2.1/24"));
        check("interface=eth1", Version::V4, Some("198.51.100.1/25"));
        check(
            "interface=eth9,docker.*",
            Version::V4,
            Some("172.17.0.1/16"),
        );
        check("interface=wlan", Version::V4, None);
        check("skip-interface=eth0", Version::V4, Some("198.51.100.1/25"));
        check("skip-interface=eth.*", Version::V4, None);
        check(
            "cidr=10.0.0.0/8,198.51.100.0/24",
            Version::V4,
            Some("198.51.100.1/25"),
        );
        check("cidr=198.51.100.0/24", Version::V4, Some("198.51.100.1/25"));
        check("cidr=2001:db8::/32", Version::V6, Some("2001:db8::1/64"));
        check(
            "kubernetes-internal-ip",
            Version::V4,
            Some("198.51.100.1/25"),
        );
        check(
            "kubernetes-internal-ip",
            Version::V6,
            Some("2001:db8::9/128"),
        );
        check("can-reach=127.0.0.1", Version::V4, Some("127.0.0.1/8"));
    }

    #[test]
    fn what_is_wrong_with_a_method_is_told() {
        for (text, words) in [
            ("last-found", "unknown"),
            ("interface=", "unknown"),
            ("interface=(", "no pattern"),
            ("cidr=10.0.0.0/99", "`10.0.0.0/99` is no network"),
        ] {
            let told = text.parse::<Method>().unwrap_err().to_string();
            assert!(told.contains(words) && told.contains(text), "{told}");
        }
    }
}
