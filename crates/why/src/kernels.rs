//! How the kernels of nodes enforce, as far as that is known.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use tortie_agent::{NodeStatus, RefusedObject, Settings};
use tortie_api::names::PolicyId;
use tortie_config::{Config, IptablesBackend, NftablesMode, Sources};
use tortie_dataplane::Owner;
use tortie_engine::Engine;
use tortie_engine::message::{Encapsulation, Policy, Profile, Rule, SetId};
use tortie_engine::verdict::{Denial, EndpointKey, Kernel, Place, Verdict};
use tortie_rules::{
    Chain, Dataplane, Direction, EndpointChain, IpVersion, Layouts, MAX_POLICY_RULES, Renderer,
    SetLayout, Table, behind_header_chain_name, endpoint_chain_name, policy_chain_name,
    profile_chain_name,
};

/// What is known of the kernels of all nodes.
pub struct Kernels<'a> {
    engine: &'a Engine,
    /// What nodes have whose agent was not asked.
    usual: Plane,
    /// The node whose agent answers on this machine.
    local: Option<(NodeStatus, Plane)>,
    /// What that agent was started with.
    settings: Option<Settings>,
}

/// Makes all chains of a policy or profile.
type Render<'a> = &'a dyn Fn(&Renderer, Layouts<'_>) -> Vec<Chain>;

/// Chains with too many rules, and how many these are.
type TooLarge = Arc<[(Arc<str>, usize)]>;

/// A data plane.
struct Plane {
    kind: Dataplane,
    hides_behind_header: bool,
    renderers: [Renderer; 2],
    /// Of each policy or profile that was asked, for IPv4 or not.
    too_large: RefCell<HashMap<(String, bool), TooLarge>>,
}

impl<'a> Kernels<'a> {
    /// Kernels of agents with this configuration; with what the agent of this machine says, if it answers.
    pub(crate) fn new(engine: &'a Engine, config: &Config, local: Option<NodeStatus>) -> Self {
        let tables = &config.tables;
        let kind = match tables.nftables_mode {
            NftablesMode::Disabled => Dataplane::Iptables,
            NftablesMode::Enabled | NftablesMode::Auto => Dataplane::Nftables,
        };
        let is_legacy = tables.iptables_backend == IptablesBackend::Legacy;
        let local = local.and_then(|status| {
            let kinds = [Dataplane::Nftables, Dataplane::Iptables];
            let mut kinds = kinds.into_iter();
            let kind = kinds.find(|kind| kind.to_string() == status.dataplane)?;
            let is_legacy = status.iptables_backend.as_deref() == Some("legacy");
            let plane = Plane::new(config, kind, is_legacy);
            Some((status, plane))
        });
        Self {
            engine,
            usual: Plane::new(config, kind, is_legacy),
            local,
            settings: None,
        }
    }

    /// With what the agent of this machine was started with.
    pub(crate) fn with_settings(mut self, settings: Option<Settings>) -> Self {
        self.settings = settings;
        self
    }

    /// What is to be known about packets with an authentication header in IPv6.
    pub fn about_header(&self, verdict: &Verdict) -> &'static str {
        let sides = [&verdict.egress, &verdict.ingress];
        let mut endpoints = sides.into_iter().filter_map(|side| side.endpoint.as_ref());
        if endpoints.any(|endpoint| !self.hides_behind_header(endpoint.node())) {
            return "legacy iptables looks through an authentication header of IPv6; ask for the protocol behind it";
        }
        "rules cannot look behind an authentication header of IPv6: those for other protocols, ports or types of ICMP deny if \
         they deny or pass on, and do not match if they allow"
    }

    fn plane(&self, node: &str) -> &Plane {
        let local = self.local.as_ref();
        let local = local.filter(|(status, _)| status.node == node);
        local.map_or(&self.usual, |(_, plane)| plane)
    }

    /// Why a chain denies all packets, if it does. `render` makes all chains of its owner.
    fn denial(
        &self,
        at: &Place<'_>,
        (owner, chain): (String, String),
        rules: &[Rule],
        render: Render<'_>,
    ) -> Option<Denial> {
        let plane = self.plane(at.node);
        let mut chains = vec![chain];
        if at.is_opaque {
            chains.push(behind_header_chain_name(&chains[0], plane.kind));
        }
        let too_large = plane.too_large(self.engine, at.is_ipv4, owner, render);
        let mut too_large = too_large.iter();
        if let Some((_, rules)) = too_large.find(|(name, _)| chains.iter().any(|c| **c == **name)) {
            return Some(Denial::TooManyRules {
                rules: *rules,
                limit: MAX_POLICY_RULES,
                dataplane: plane.kind.to_string(),
            });
        }
        self.refusal(at, |refused| {
            if let Some(chain) = &refused.chain {
                return chains.contains(chain);
            }
            let mut sets = rules.iter().flat_map(Rule::sets);
            refused.what == Owner::SET && sets.any(|set| set.as_str() == refused.name)
        })
    }

    /// What the kernel of the node refused, of those that are meant.
    fn refusal(&self, at: &Place<'_>, is_meant: impl Fn(&RefusedObject) -> bool) -> Option<Denial> {
        let local = self.local.as_ref();
        let (status, _) = local.filter(|(status, _)| status.node == at.node)?;
        let version = if at.is_ipv4 { 4 } else { 6 };
        let mut refused = status.refused.iter();
        let refused = refused.find(|one| one.ip_version == version && is_meant(one))?;
        Some(Denial::Refused {
            node: status.node.clone(),
            object: format!("{} {}", refused.what, refused.name),
            reason: refused.reason.clone(),
        })
    }
}

impl Kernel for Kernels<'_> {
    fn denial_of_policy(&self, at: &Place<'_>, id: &PolicyId, policy: &Policy) -> Option<Denial> {
        let plane = self.plane(at.node);
        let chain = policy_chain_name(id, direction(at), plane.kind);
        let rules = if at.is_ingress {
            &policy.inbound_rules
        } else {
            &policy.outbound_rules
        };
        let table = if policy.untracked {
            Table::Raw
        } else if policy.pre_dnat {
            Table::Mangle
        } else {
            Table::Filter
        };
        self.denial(at, (id.full_name(), chain), rules, &|renderer, layouts| {
            renderer.policy_chains(table, id, policy, layouts)
        })
    }

    fn denial_of_profile(&self, at: &Place<'_>, name: &str, profile: &Profile) -> Option<Denial> {
        let plane = self.plane(at.node);
        let chain = profile_chain_name(name, direction(at), plane.kind);
        let rules = if at.is_ingress {
            &profile.inbound_rules
        } else {
            &profile.outbound_rules
        };
        let owner = format!("Profile {name}");
        self.denial(at, (owner, chain), rules, &|renderer, layouts| {
            renderer.profile_chains(Table::Filter, name, profile, layouts)
        })
    }

    fn denial_of_endpoint(
        &self,
        at: &Place<'_>,
        endpoint: &EndpointKey,
        interface: &str,
    ) -> Option<Denial> {
        let kind = self.plane(at.node).kind;
        self.refusal(at, |refused| match endpoint {
            EndpointKey::Workload(_) => {
                let chain = if at.is_ingress {
                    EndpointChain::ToWorkload
                } else {
                    EndpointChain::FromWorkload
                };
                let chain = endpoint_chain_name(chain, interface, kind);
                refused.chain.as_deref() == Some(&*chain)
            }
            // Its interface may be known to the agent alone.
            EndpointKey::Host(key) => refused.what == "HostEndpoint" && refused.name == key.name,
        })
    }

    fn started_with(&self, node: &str) -> Option<Sources> {
        let settings = self.settings.as_ref();
        let settings = settings.filter(|settings| settings.node == node)?;
        Some(settings.clone().into())
    }

    fn hides_behind_header(&self, node: &str) -> bool {
        self.plane(node).hides_behind_header
    }
}

impl Plane {
    fn new(config: &Config, kind: Dataplane, is_legacy: bool) -> Self {
        let rules =
            tortie_rules::Config::new(config, kind, Encapsulation::default()).unwrap_or_default();
        let rules = Arc::new(rules);
        let hides_behind_header = kind == Dataplane::Nftables || !is_legacy;
        let renderer = |version| {
            let mut renderer = Renderer::new(Arc::clone(&rules), kind, version);
            if hides_behind_header {
                renderer.hide_behind_header();
            }
            renderer
        };
        Self {
            kind,
            hides_behind_header,
            renderers: [IpVersion::V4, IpVersion::V6].map(renderer),
            too_large: RefCell::default(),
        }
    }

    fn too_large(
        &self,
        engine: &Engine,
        is_ipv4: bool,
        owner: String,
        render: Render<'_>,
    ) -> TooLarge {
        let mut known = self.too_large.borrow_mut();
        let too_large = known.entry((owner, is_ipv4)).or_insert_with(|| {
            let renderer = &self.renderers[usize::from(!is_ipv4)];
            let layouts = |set: &SetId| SetLayout {
                networks: engine.has_networks(set, is_ipv4),
            };
            let chains = render(renderer, &layouts).into_iter();
            let large = chains.filter(|chain| chain.rules.len() > MAX_POLICY_RULES);
            large.map(|chain| (chain.name, chain.rules.len())).collect()
        });
        Arc::clone(too_large)
    }
}

fn direction(at: &Place<'_>) -> Direction {
    if at.is_ingress {
        Direction::Ingress
    } else {
        Direction::Egress
    }
}
