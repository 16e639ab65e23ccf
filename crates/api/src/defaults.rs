//! Defaults that depend on other fields; plain ones are attributes of the types.

use crate::kinds::felix_configuration::{
    BpfConnectTimeLbType, BpfHostNetworkedNatType, FelixConfigurationSpec, FloatingIpType,
};
use crate::kinds::ip_pool::{AssignmentMode, IpPoolAllowedUse, IpPoolSpec, IpipMode, VxlanMode};
use crate::kinds::kube_controllers_configuration::{AssignIps, KubeControllersConfigurationSpec};
use crate::kinds::rule::{Action, PolicyType, Rule, StagedAction};
use crate::kinds::{Tier, WorkloadEndpoint};
use crate::meta::Metadata;
use crate::names;
use crate::net;
use crate::resource::Resource;
use crate::scalar::GoDuration;

/// The label that tells which tier a policy belongs to.
pub(crate) const TIER_LABEL: &str = "projectcalico.org/tier";
/// The tier of policies that name none.
pub(crate) const DEFAULT_TIER: &str = "default";
/// Where a tier without an order stands.
const DEFAULT_TIER_ORDER: f64 = 1_000_000.0;

const DEFAULT_CONTROLLERS_METRICS_PORT: i64 = 9094;
const DEFAULT_LEAK_GRACE_PERIOD: GoDuration = GoDuration::from_secs(15 * 60);

pub(crate) fn apply(resource: &mut Resource) {
    match resource {
        Resource::NetworkPolicy(policy) => {
            let spec = &mut policy.spec;
            default_types(&spec.ingress, &spec.egress, &mut spec.types);
            label_with_tier(&mut policy.metadata, &spec.tier);
        }
        Resource::GlobalNetworkPolicy(policy) => {
            let spec = &mut policy.spec;
            default_types(&spec.ingress, &spec.egress, &mut spec.types);
            label_with_tier(&mut policy.metadata, &spec.tier);
        }
        Resource::StagedNetworkPolicy(staged) => {
            let spec = &mut staged.spec.policy;
            if staged.spec.staged_action != Some(StagedAction::Delete) {
                default_types(&spec.ingress, &spec.egress, &mut spec.types);
            }
            label_with_tier(&mut staged.metadata, &spec.tier);
        }
        Resource::StagedGlobalNetworkPolicy(staged) => {
            let spec = &mut staged.spec.policy;
            if staged.spec.staged_action != Some(StagedAction::Delete) {
                default_types(&spec.ingress, &spec.egress, &mut spec.types);
            }
            label_with_tier(&mut staged.metadata, &spec.tier);
        }
        Resource::Tier(tier) => default_tier(tier),
        Resource::IpPool(pool) => default_pool(&mut pool.spec),
        Resource::FelixConfiguration(config) => default_felix(&mut config.spec),
        Resource::KubeControllersConfiguration(config) => default_controllers(&mut config.spec),
        Resource::WorkloadEndpoint(endpoint) => default_endpoint(endpoint),
        _ => {}
    }
}

/// Completes what older versions may have stored: the tier label of policies, and defaults of tiers and pools.
pub(crate) fn apply_on_read(resource: &mut Resource) {
    match resource {
        Resource::NetworkPolicy(policy) => label_with_tier_if_missing(&mut policy.metadata),
        Resource::GlobalNetworkPolicy(policy) => label_with_tier_if_missing(&mut policy.metadata),
        Resource::StagedNetworkPolicy(policy) => label_with_tier_if_missing(&mut policy.metadata),
        Resource::StagedGlobalNetworkPolicy(policy) => {
            label_with_tier_if_missing(&mut policy.metadata);
        }
        Resource::Tier(tier) => default_tier(tier),
        Resource::IpPool(pool) => default_pool(&mut pool.spec),
        _ => {}
    }
}

fn label_with_tier_if_missing(metadata: &mut Metadata) {
    metadata
        .labels
        .entry(TIER_LABEL.to_owned())
        .or_insert_with(|| DEFAULT_TIER.to_owned());
}

/// A policy without types applies to the directions that it has rules for, and to ingress if it has none.
fn default_types(ingress: &[Rule], egress: &[Rule], types: &mut Vec<PolicyType>) {
    if !types.is_empty() {
        return;
    }
    if !ingress.is_empty() || egress.is_empty() {
        types.push(PolicyType::Ingress);
    }
    if !egress.is_empty() {
        types.push(PolicyType::Egress);
    }
}

fn label_with_tier(metadata: &mut Metadata, tier: &str) {
    let tier = if tier.is_empty() { DEFAULT_TIER } else { tier };
    metadata
        .labels
        .insert(TIER_LABEL.to_owned(), tier.to_owned());
}

fn default_tier(tier: &mut Tier) {
    tier.spec.order.get_or_insert(DEFAULT_TIER_ORDER);
    tier.spec.default_action.get_or_insert(Action::Deny);
}

fn default_pool(pool: &mut IpPoolSpec) {
    if let Some(cidr) = net::parse_cidr_or_ip(&pool.cidr) {
        if cidr.is_masked() {
            pool.cidr = cidr.network().to_string();
        }
        if pool.block_size == 0 {
            pool.block_size = if cidr.is_ipv4() { 26 } else { 122 };
        }
    }
    if pool.node_selector.is_empty() {
        "all()".clone_into(&mut pool.node_selector);
    }
    if pool.allowed_uses.is_empty() {
        pool.allowed_uses = vec![IpPoolAllowedUse::Workload, IpPoolAllowedUse::Tunnel];
    }
    pool.ipip_mode.get_or_insert(IpipMode::Never);
    pool.vxlan_mode.get_or_insert(VxlanMode::Never);
    pool.assignment_mode
        .get_or_insert(AssignmentMode::Automatic);
}

fn default_felix(spec: &mut FelixConfigurationSpec) {
    spec.floating_ips.get_or_insert(FloatingIpType::Disabled);
    spec.bpf_connect_time_load_balancing
        .get_or_insert(BpfConnectTimeLbType::Tcp);
    spec.bpf_host_networked_nat_without_ctlb
        .get_or_insert(BpfHostNetworkedNatType::Enabled);
    // The older switch wins over the two that replaced it.
    if let Some(enabled) = spec.bpf_connect_time_load_balancing_enabled {
        spec.bpf_host_networked_nat_without_ctlb = Some(BpfHostNetworkedNatType::Disabled);
        spec.bpf_connect_time_load_balancing = Some(if enabled {
            BpfConnectTimeLbType::Enabled
        } else {
            BpfConnectTimeLbType::Disabled
        });
    }
}

fn default_controllers(spec: &mut KubeControllersConfigurationSpec) {
    spec.prometheus_metrics_port
        .get_or_insert(DEFAULT_CONTROLLERS_METRICS_PORT);
    if let Some(node) = &mut spec.controllers.node {
        node.leak_grace_period
            .get_or_insert(DEFAULT_LEAK_GRACE_PERIOD);
    }
    if let Some(load_balancer) = &mut spec.controllers.load_balancer {
        load_balancer
            .assign_ips
            .get_or_insert(AssignIps::AllServices);
    }
}

/// The name and two labels of a workload endpoint follow from the rest.
fn default_endpoint(endpoint: &mut WorkloadEndpoint) {
    if endpoint.metadata.name.is_empty()
        && let Ok(name) = names::workload_endpoint_name(&endpoint.spec)
    {
        endpoint.metadata.name = name;
    }
    let labels = &mut endpoint.metadata.labels;
    labels.insert(
        "projectcalico.org/namespace".to_owned(),
        endpoint.metadata.namespace.clone(),
    );
    labels.insert(
        "projectcalico.org/orchestrator".to_owned(),
        endpoint.spec.orchestrator.clone(),
    );
}
