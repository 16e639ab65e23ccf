//! Who speaks with whom: the mesh, and what each `BGPPeer` asks of this node.

mod explicit;
mod options;

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

use super::settings::{Settings, configuration};
use super::{FamilyPlan, Filter, NextHop, Origin, Peer, PeerKind, Problems, Via};
use crate::inputs::{NodeFacts, SecretText, secret_ref};
use crate::text::Password;
use crate::{Family, Inputs, PerFamily};

/// What tells sessions of a node apart.
type Key = (IpAddr, Option<u16>);

/// The sessions that `BGPPeer`s ask for.
#[derive(Default)]
struct Explicit {
    sessions: BTreeMap<Key, Peer>,
    reachable: Vec<Via>,
}

/// What is looked at for each session.
struct Context<'a> {
    inputs: &'a Inputs,
    settings: &'a Settings,
    /// Where each filter is, by its name.
    filters: HashMap<&'a str, usize>,
    /// The nodes with an address, by name.
    nodes: HashMap<IpAddr, Vec<(&'a Arc<str>, &'a NodeFacts)>>,
}

pub(super) fn plan(
    inputs: &Inputs,
    settings: &Settings,
    filters: &[Filter],
    families: &mut PerFamily<FamilyPlan>,
    problems: &mut Problems,
) {
    let context = Context::new(inputs, settings, filters);
    let explicit = explicit::plan(&context, problems);
    let mesh = mesh(&context, problems);
    say_twice(&explicit, &mesh, problems);
    for peer in mesh.into_iter().chain(explicit.sessions.into_values()) {
        let family = families.get_mut(Family::of(peer.address));
        family.peers.push(peer);
    }
    for family in Family::BOTH {
        let peers = &mut families.get_mut(family).peers;
        peers.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    }
    for via in explicit.reachable {
        families
            .get_mut(Family::of(via.address))
            .reachable
            .push(via);
    }
}

impl<'a> Context<'a> {
    fn new(inputs: &'a Inputs, settings: &'a Settings, filters: &'a [Filter]) -> Self {
        let mut nodes: HashMap<IpAddr, Vec<_>> = HashMap::with_capacity(2 * inputs.nodes.len());
        for (name, node) in &inputs.nodes {
            for address in Family::BOTH
                .into_iter()
                .filter_map(|family| node.address(family))
            {
                nodes.entry(address).or_default().push((name, node));
            }
        }
        let names = filters.iter().enumerate();
        Self {
            inputs,
            settings,
            filters: names
                .map(|(index, filter)| (&*filter.name, index))
                .collect(),
            nodes,
        }
    }

    fn own_address(&self, family: Family) -> Option<IpAddr> {
        self.inputs.local()?.address(family)
    }

    /// The password that a secret has, or why there is none.
    fn password(&self, selector: &tortie_api::meta::SecretKeySelector) -> Result<Password, String> {
        let secret = secret_ref(selector);
        let (name, key) = (super::shown(&secret.name), super::shown(&secret.key));
        match self.inputs.secrets.get(&secret) {
            Some(SecretText::Usable(password)) => Ok(password.clone()),
            Some(SecretText::Unusable) => Err(format!(
                "what the secret {name} has under {key} is no password: {}",
                Password::EXPECTED
            )),
            None => Err(format!("there is no secret {name} with the key {key}")),
        }
    }
}

/// A session with each other node, unless one of both is a route reflector.
fn mesh(context: &Context, problems: &mut Problems) -> Vec<Peer> {
    let (inputs, settings) = (context.inputs, context.settings);
    if !inputs.is_mesh_enabled() || settings.cluster_id.is_some() {
        return Vec::new();
    }
    let spec = &inputs.configuration;
    let restart_time = spec.node_mesh_max_restart_time.and_then(|time| {
        let origin = configuration("spec.nodeMeshMaxRestartTime");
        options::restart_time(time, &origin, problems)
    });
    let selector = spec.node_mesh_password.as_ref();
    let selector = selector.and_then(|password| password.secret_key_ref.as_ref());
    let password = match selector
        .map(|selector| context.password(selector))
        .transpose()
    {
        Ok(password) => password,
        Err(reason) => {
            let origin = configuration("spec.nodeMeshPassword.secretKeyRef");
            problems.push(origin.problem(format!("{reason}; the mesh has no sessions")));
            return Vec::new();
        }
    };
    let mut peers = Vec::with_capacity(inputs.nodes.len());
    for family in Family::BOTH {
        let Some(own) = context.own_address(family) else {
            continue;
        };
        for (name, node) in &inputs.nodes {
            let Some(address) = node.address(family) else {
                continue;
            };
            let is_local = **name == *inputs.identity.node;
            if is_local || node.session.cluster_id.is_some() {
                continue;
            }
            let origin = Origin::new("Node", Arc::clone(name), "spec.bgp");
            if let Some(first) = context.other_holder(address, name) {
                problems.push(origin.problem(format!(
                    "{address} is the address of Node({first}) too; there is one session, for the first of them"
                )));
                continue;
            }
            peers.push(Peer {
                name: PeerKind::Mesh.name(address, None),
                kind: PeerKind::Mesh,
                address,
                port: inputs.listen_port(name),
                as_number: usable_as(node).unwrap_or(settings.as_number),
                local_as: None,
                source: Some(own),
                is_passive: address.to_string() > own.to_string(),
                ttl_security: None,
                restart_time,
                keepalive_time: None,
                reflects: None,
                next_hop: NextHop::Auto,
                allowed_local_as: None,
                password: password.clone(),
                filters: Vec::new(),
                origin,
            });
        }
    }
    peers
}

impl Context<'_> {
    /// Who has the address and comes first: this node, or a name before this one.
    fn other_holder(&self, address: IpAddr, name: &Arc<str>) -> Option<&Arc<str>> {
        let own = &*self.inputs.identity.node;
        let holders = self.nodes.get(&address)?;
        let local = holders.iter().find(|(holder, _)| ***holder == *own);
        let first = local.or(holders.first())?;
        (first.0 != name).then_some(first.0)
    }
}

/// A node's own AS number, if it can be one.
fn usable_as(node: &NodeFacts) -> Option<u32> {
    node.session.as_number.filter(|number| *number != 0)
}

/// Says where the mesh and a `BGPPeer` have sessions with the same neighbour, of which only one comes up.
fn say_twice(explicit: &Explicit, mesh: &[Peer], problems: &mut Problems) {
    let mut asked: HashMap<IpAddr, &Peer> = HashMap::new();
    for peer in explicit.sessions.values() {
        asked.entry(peer.address).or_insert(peer);
    }
    let mut twice = mesh.iter().filter_map(|peer| asked.get(&peer.address));
    if let Some(first) = twice.next() {
        let count = 1 + twice.count();
        let (address, name) = (first.address, &first.origin.name);
        problems.push(configuration("spec.nodeToNodeMeshEnabled").problem(format!(
            "the mesh has sessions with {count} neighbours that BGPPeers name too, such as {address} by \
             BGPPeer({name}); only one of both comes up: set it to false, or take the BGPPeers away"
        )));
    }
}
