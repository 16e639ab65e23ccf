//! Tunnels between nodes: VXLAN, IP-in-IP, WireGuard.

use crate::parameter::{Kind, Parameter};

pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter::new(
        "VXLANEnabled",
        Kind::Bool,
        "",
        "whether to use VXLAN; pools decide without it",
    )
    .acted_on(),
    Parameter::new(
        "VXLANPort",
        Kind::Int {
            min: 0,
            max: 65_535,
        },
        "4789",
        "UDP port of VXLAN",
    )
    .acted_on(),
    Parameter::new(
        "VXLANVNI",
        Kind::Int {
            min: 0,
            max: 16_777_215,
        },
        "4096",
        "VXLAN network number",
    )
    .acted_on(),
    Parameter::new(
        "VXLANMTU",
        Kind::Int {
            min: 0,
            max: 65_535,
        },
        "0",
        "MTU of the VXLAN device; 0 to find it out",
    )
    .acted_on(),
    Parameter::new(
        "VXLANMTUV6",
        Kind::Int {
            min: 0,
            max: 65_535,
        },
        "0",
        "MTU of the IPv6 VXLAN device; 0 to find it out",
    )
    .acted_on(),
    Parameter::new(
        "IPv4VXLANTunnelAddr",
        Kind::Ipv4,
        "",
        "address of this node's VXLAN device",
    )
    .acted_on(),
    Parameter::new(
        "IPv6VXLANTunnelAddr",
        Kind::Ipv6,
        "",
        "address of this node's IPv6 VXLAN device",
    )
    .acted_on(),
    Parameter::new(
        "VXLANTunnelMACAddr",
        Kind::Text,
        "",
        "hardware address of this node's VXLAN device",
    )
    .ignored("the VXLAN device has the hardware address that its Node says, or that follows from the Node's name"),
    Parameter::new(
        "VXLANTunnelMACAddrV6",
        Kind::Text,
        "",
        "hardware address of this node's IPv6 VXLAN device",
    )
    .ignored("the IPv6 VXLAN device has the hardware address that its Node says, or that follows from the Node's name"),
    Parameter::new(
        "IpInIpEnabled",
        Kind::Bool,
        "",
        "whether to use IP-in-IP; pools decide without it",
    )
    .acted_on(),
    Parameter::new(
        "IpInIpMtu",
        Kind::Int {
            min: 0,
            max: 65_535,
        },
        "0",
        "MTU of the IP-in-IP device; 0 to find it out",
    )
    .acted_on(),
    Parameter::new(
        "IpInIpTunnelAddr",
        Kind::Ipv4,
        "",
        "address of this node's IP-in-IP device",
    )
    .acted_on(),
    Parameter::new(
        "AllowVXLANPacketsFromWorkloads",
        Kind::Bool,
        "false",
        "whether workloads may send VXLAN packets of their own",
    )
    .acted_on(),
    Parameter::new(
        "AllowIPIPPacketsFromWorkloads",
        Kind::Bool,
        "false",
        "whether workloads may send IP-in-IP packets of their own",
    )
    .acted_on(),
    Parameter::new(
        "WireguardEnabled",
        Kind::Bool,
        "false",
        "whether IPv4 between nodes must be encrypted; without --allow-cleartext there is no way to other nodes then",
    )
    .acted_on(),
    Parameter::new(
        "WireguardEnabledV6",
        Kind::Bool,
        "false",
        "whether IPv6 between nodes must be encrypted; without --allow-cleartext there is no way to other nodes then",
    )
    .acted_on(),
    Parameter::new(
        "WireguardListeningPort",
        Kind::ANY_INT,
        "51820",
        "UDP port of WireGuard",
    )
    .ignored("nothing is encrypted: there is no WireGuard device that listens on this port"),
    Parameter::new(
        "WireguardListeningPortV6",
        Kind::ANY_INT,
        "51821",
        "UDP port of WireGuard for IPv6",
    )
    .ignored("nothing is encrypted: there is no WireGuard device that listens on this port"),
    Parameter::new(
        "WireguardRoutingRulePriority",
        Kind::ANY_INT,
        "99",
        "priority of the routing rule for WireGuard",
    )
    .ignored("nothing is encrypted: there is no WireGuard device, and no routing rule for one"),
    Parameter::new(
        "WireguardInterfaceName",
        Kind::InterfaceName,
        "wireguard.cali",
        "name of the WireGuard device",
    )
    .required()
    .ignored("nothing is encrypted: there is no WireGuard device of this name"),
    Parameter::new(
        "WireguardInterfaceNameV6",
        Kind::InterfaceName,
        "wg-v6.cali",
        "name of the IPv6 WireGuard device",
    )
    .required()
    .ignored("nothing is encrypted: there is no WireGuard device of this name"),
    Parameter::new(
        "WireguardMTU",
        Kind::ANY_INT,
        "0",
        "MTU of the WireGuard device; 0 to find it out",
    )
    .ignored("nothing is encrypted: there is no WireGuard device that could have this MTU"),
    Parameter::new(
        "WireguardMTUV6",
        Kind::ANY_INT,
        "0",
        "MTU of the IPv6 WireGuard device; 0 to find it out",
    )
    .ignored("nothing is encrypted: there is no WireGuard device that could have this MTU"),
    Parameter::new(
        "WireguardHostEncryptionEnabled",
        Kind::Bool,
        "false",
        "whether to encrypt the hosts' own traffic, too",
    )
    .ignored("traffic of hosts is not encrypted, nor is any other"),
    Parameter::new(
        "WireguardPersistentKeepAlive",
        Kind::Seconds,
        "0",
        "time between WireGuard keep-alive packets; 0 for none",
    )
    .ignored("nothing is encrypted: there is no WireGuard device that sends keep-alive packets"),
    Parameter::new(
        "WireguardThreadingEnabled",
        Kind::Bool,
        "false",
        "whether WireGuard may decrypt on several cores",
    )
    .ignored("nothing is encrypted: there is no WireGuard device that could use several cores"),
];
