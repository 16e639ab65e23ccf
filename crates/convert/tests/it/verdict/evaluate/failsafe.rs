//! Ports of hosts that no policy can close.

use tortie_api::Resource;
use tortie_api::felix_configuration::ProtoPort;
use tortie_api::rule::{Action, PolicyType};
use tortie_api::scalar::Protocol;
use tortie_engine::verdict::{By, Flow, Outcome};

use super::party::{net, same};
use super::{Decision, Evaluator};

/// What is open unless the configuration says otherwise.
const INBOUND: [(&str, u16); 9] = [
    ("tcp", 22),
    ("udp", 68),
    ("tcp", 179),
    ("tcp", 2379),
    ("tcp", 2380),
    ("tcp", 5473),
    ("tcp", 6443),
    ("tcp", 6666),
    ("tcp", 6667),
];
const OUTBOUND: [(&str, u16); 9] = [
    ("udp", 53),
    ("udp", 67),
    ("tcp", 179),
    ("tcp", 2379),
    ("tcp", 2380),
    ("tcp", 5473),
    ("tcp", 6443),
    ("tcp", 6666),
    ("tcp", 6667),
];

impl Evaluator<'_> {
    /// ANY open port: by the configuration of the node, else of the cluster, else the built-in ones.
    pub(super) fn failsafe(
        &self,
        node: &str,
        flow: &Flow,
        direction: PolicyType,
    ) -> Option<Decision> {
        let (built_in, peer) = match direction {
            PolicyType::Ingress => (INBOUND, flow.source.address),
            PolicyType::Egress => (OUTBOUND, flow.destination.address),
        };
        let configured = self
            .configured(&format!("node.{node}"), direction)
            .or_else(|| self.configured("default", direction));
        let ports = configured.map_or_else(|| built_in.map(built_in_port).to_vec(), <[_]>::to_vec);
        let open = ports.iter().find(|open| {
            let protocol: Protocol = open
                .protocol
                .to_uppercase()
                .parse()
                .expect("any text parses");
            same(flow.protocol.as_ref(), &protocol)
                && flow.destination_port == Some(open.port)
                && (open.net.is_empty() || net(&open.net).contains(&peer))
        })?;
        let action = Action::Allow;
        Some((
            Outcome::Allow,
            By::Failsafe {
                port: text(open),
                action,
            },
        ))
    }

    fn configured(&self, wanted: &str, direction: PolicyType) -> Option<&[ProtoPort]> {
        self.world.resources().find_map(|resource| match resource {
            Resource::FelixConfiguration(felix) if felix.metadata.name == wanted => match direction
            {
                PolicyType::Ingress => felix.spec.failsafe_inbound_host_ports.as_deref(),
                PolicyType::Egress => felix.spec.failsafe_outbound_host_ports.as_deref(),
            },
            _ => None,
        })
    }
}

fn built_in_port((protocol, port): (&str, u16)) -> ProtoPort {
    ProtoPort {
        protocol: protocol.to_owned(),
        port,
        net: String::new(),
    }
}

/// The port as it is called.
fn text(open: &ProtoPort) -> String {
    let (protocol, port) = (open.protocol.to_lowercase(), open.port);
    match open.net.as_str() {
        "" => format!("{protocol}:{port}"),
        net if net.contains(':') => format!("{protocol}:[{net}]:{port}"),
        net => format!("{protocol}:{net}:{port}"),
    }
}
