//! What is said of flannel's network, in variables and in the file that flannel writes on each node.

use std::collections::BTreeMap;
use std::str::FromStr;

use ipnet::IpNet;
use tortie_api::scalar::go_bool;

use crate::Refused;

/// The `DaemonSet` of Canal, which is flannel's network with Calico's policy.
const CANAL: &str = "canal";

/// What is to be moved, and where to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Flannel's `DaemonSet`.
    pub flannel_daemonset: String,
    pub flannel_namespace: String,
    /// How long the prefixes of nodes' networks are.
    pub subnet_length: u8,
    /// The same for IPv6.
    pub subnet_length_v6: u8,
    /// What the names of flannel's annotations on nodes begin with.
    pub annotation_prefix: String,
    /// The number of flannel's VXLAN.
    pub vni: i64,
    /// The port of flannel's VXLAN.
    pub port: i64,
    /// Calico's `DaemonSet`.
    pub calico_daemonset: String,
    pub calico_namespace: String,
    /// Where container runtimes look for configurations of networks.
    pub cni_folder: String,
    /// The node that this process is on.
    pub node: String,
    /// The shortest prefix of blocks.
    pub block_size: u8,
    /// The same for IPv6.
    pub block_size_v6: u8,
    /// What flannel wrote, if that is known already.
    pub subnet: Option<Subnet>,
}

/// What flannel writes on each node to `subnet.env`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subnet {
    /// The network of all pods.
    pub network: IpNet,
    /// The same for IPv6, if there is one.
    pub network_v6: Option<IpNet>,
    /// How large packets in the tunnel may be.
    pub mtu: i64,
    /// Whether pods get the node's address for destinations outside.
    pub masquerades: bool,
}

impl Settings {
    /// Reads the variables of the process.
    pub fn read(variables: &BTreeMap<String, String>) -> Result<Self, Vec<Refused>> {
        let mut reader = Reader {
            variables,
            refused: Vec::new(),
        };
        let subnet = reader.text("FLANNEL_SUBNET_ENV", "");
        let settings = Self {
            flannel_daemonset: reader.text("FLANNEL_DAEMONSET_NAME", "kube-flannel-ds"),
            flannel_namespace: reader.text("FLANNEL_DAEMONSET_NAMESPACE", "kube-flannel"),
            subnet_length: reader.number("FLANNEL_SUBNET_LEN", 24, 32),
            subnet_length_v6: reader.number("FLANNEL_IPV6_SUBNET_LEN", 64, 128),
            annotation_prefix: reader.text("FLANNEL_ANNOTATION_PREFIX", "flannel.alpha.coreos.com"),
            vni: reader.number("FLANNEL_VNI", 1, (1 << 24) - 1),
            port: reader.number("FLANNEL_PORT", 8472, 65535),
            calico_daemonset: reader.text("CALICO_DAEMONSET_NAME", "calico-node"),
            calico_namespace: reader.text("CALICO_DAEMONSET_NAMESPACE", "kube-system"),
            cni_folder: reader.text("CNI_CONFIG_DIR", "/etc/cni/net.d"),
            node: reader.text("POD_NODE_NAME", ""),
            block_size: reader.number("DEFAULT_IPPOOL_SIZE", 26, 32),
            block_size_v6: reader.number("DEFAULT_IPPOOL_SIZE_V6", 122, 128),
            // One line, so that it fits a variable.
            subnet: match subnet.as_str() {
                "" => None,
                text => match Subnet::parse(&text.replace(';', "\n")) {
                    Ok(subnet) => Some(subnet),
                    Err(rule) => {
                        reader.refuse("FLANNEL_SUBNET_ENV", text, rule);
                        None
                    }
                },
            },
        };
        if settings.node.is_empty() {
            reader.refuse(
                "POD_NODE_NAME",
                "",
                "must be the name of the node that this runs on",
            );
        }
        if reader.refused.is_empty() {
            Ok(settings)
        } else {
            Err(reader.refused)
        }
    }

    /// The same for Canal.
    #[must_use]
    pub(super) fn for_canal(mut self) -> Self {
        CANAL.clone_into(&mut self.flannel_daemonset);
        self
    }

    /// The `DaemonSet` that Canal has.
    pub(super) fn canal() -> &'static str {
        CANAL
    }

    /// Whether Canal is moved, which has no bridge and pools of its own.
    pub(super) fn is_canal(&self) -> bool {
        self.flannel_daemonset == CANAL
    }
}

struct Reader<'a> {
    variables: &'a BTreeMap<String, String>,
    refused: Vec<Refused>,
}

impl Reader<'_> {
    fn text(&self, name: &'static str, usual: &str) -> String {
        let given = self.variables.get(name).map(String::as_str);
        given
            .filter(|text| !text.is_empty())
            .unwrap_or(usual)
            .to_owned()
    }

    fn number<T: FromStr + PartialOrd + Copy + std::fmt::Display>(
        &mut self,
        name: &'static str,
        usual: T,
        most: T,
    ) -> T {
        let text = self.text(name, "");
        if text.is_empty() {
            return usual;
        }
        match text.parse::<T>() {
            Ok(number) if number <= most => number,
            _ => {
                self.refuse(name, &text, format!("must be a whole number up to {most}"));
                usual
            }
        }
    }

    fn refuse(&mut self, name: &'static str, value: &str, rule: impl Into<String>) {
        self.refused.push(Refused {
            variable: name,
            value: value.to_owned(),
            rule: rule.into(),
        });
    }
}

impl Subnet {
    /// Reads the lines `NAME=VALUE` that flannel writes. The error says what is wrong.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let lines = text.lines().filter_map(|line| line.trim().split_once('='));
        let values: BTreeMap<&str, &str> = lines
            .map(|(name, value)| (name.trim(), value.trim().trim_matches('"')))
            .collect();
        let required = |name: &str| {
            let value = values.get(name).copied();
            value.ok_or_else(|| format!("{name} is missing"))
        };
        let network = |name: &str, text: &str| {
            let parsed = tortie_api::net::parse_cidr(text).map(tortie_api::net::Cidr::network);
            parsed.ok_or_else(|| format!("{name}: {text:?} is no network such as 10.244.0.0/16"))
        };
        Ok(Self {
            network: network("FLANNEL_NETWORK", required("FLANNEL_NETWORK")?)?,
            network_v6: match values.get("FLANNEL_IPV6_NETWORK").copied() {
                None | Some("") => None,
                Some(text) => Some(network("FLANNEL_IPV6_NETWORK", text)?),
            },
            mtu: match required("FLANNEL_MTU")?.parse() {
                Ok(mtu) if mtu > 0 => mtu,
                _ => return Err("FLANNEL_MTU must be a whole number above 0".to_owned()),
            },
            masquerades: {
                let text = required("FLANNEL_IPMASQ")?;
                go_bool(text)
                    .ok_or_else(|| format!("FLANNEL_IPMASQ: {text:?} is not true or false"))?
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "FLANNEL_NETWORK=10.244.0.0/16\nFLANNEL_SUBNET=10.244.1.1/24\nFLANNEL_MTU=1450\nFLANNEL_IPMASQ=true\n";

    fn read(pairs: &[(&str, &str)]) -> Result<Settings, Vec<Refused>> {
        let pairs = pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Settings::read(&pairs.collect())
    }

    #[test]
    fn flannels_own_file_is_understood() {
        let subnet = Subnet::parse(FILE).unwrap();
        assert_eq!(subnet.network.to_string(), "10.244.0.0/16");
        assert_eq!(
            (subnet.mtu, subnet.masquerades, subnet.network_v6),
            (1450, true, None)
        );
        let both = format!("{FILE}FLANNEL_IPV6_NETWORK=fd00::/56\n");
        assert!(Subnet::parse(&both).unwrap().network_v6.is_some());
    }

    #[test]
    fn what_is_missing_in_the_file_is_named() {
        for (line, message) in [
            (
                "FLANNEL_NETWORK=10.244.0.0/16\n",
                "FLANNEL_NETWORK is missing",
            ),
            ("FLANNEL_MTU=1450\n", "FLANNEL_MTU is missing"),
            ("FLANNEL_IPMASQ=true\n", "FLANNEL_IPMASQ is missing"),
        ] {
            assert_eq!(Subnet::parse(&FILE.replace(line, "")).unwrap_err(), message);
        }
        for (old, new) in [("10.244.0.0/16", "x"), ("1450", "0"), ("true", "perhaps")] {
            assert!(Subnet::parse(&FILE.replace(old, new)).is_err(), "{new}");
        }
    }

    #[test]
    fn variables_have_flannels_usual_values() {
        let settings = read(&[("POD_NODE_NAME", "n1")]).unwrap();
        assert_eq!(
            (settings.vni, settings.port, settings.subnet_length),
            (1, 8472, 24)
        );
        assert_eq!(settings.flannel_daemonset, "kube-flannel-ds");
        assert_eq!(settings.subnet, None);
        assert!(settings.clone().for_canal().is_canal() && !settings.is_canal());
        let file = FILE.replace('\n', ";");
        let settings = read(&[("POD_NODE_NAME", "n1"), ("FLANNEL_SUBNET_ENV", &file)]).unwrap();
        assert_eq!(settings.subnet, Some(Subnet::parse(FILE).unwrap()));
    }

    #[test]
    fn all_that_is_wrong_is_refused_at_once() {
        let refused = read(&[
            ("FLANNEL_VNI", "many"),
            ("FLANNEL_PORT", "70000"),
            ("FLANNEL_SUBNET_ENV", "x"),
        ]);
        let refused: Vec<&str> = refused
            .unwrap_err()
            .into_iter()
            .map(|refused| refused.variable)
            .collect();
        assert_eq!(
            refused,
            [
                "FLANNEL_VNI",
                "FLANNEL_PORT",
                "FLANNEL_SUBNET_ENV",
                "POD_NODE_NAME"
            ]
        );
    }
}
