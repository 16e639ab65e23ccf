//! Which policies apply to an endpoint, and which endpoints a policy applies to.

use std::io::Write;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use tortie_api::names::{PolicyId, PolicyKind};
use tortie_convert::policy_id;
use tortie_engine::verdict::{AppliedPolicy, EndpointKey, Point};
use tortie_why::World;

use crate::args::WhyOutput;
use crate::commands::kinds;
use crate::output::Table;

/// Writes the policies that apply to an endpoint, in order.
pub(super) fn policies(
    world: &World,
    asked: &str,
    output: WhyOutput,
    out: &mut impl Write,
) -> Result<()> {
    let endpoint = world.directory.find(asked)?.endpoint(None)?;
    let applied = match &endpoint {
        None => Vec::new(),
        Some(key) => {
            let applied = world.engine.policies_of(key);
            applied.with_context(|| format!("`{asked}` is not an endpoint of the engine"))?
        }
    };
    if output == WhyOutput::Json {
        let policies: Vec<Value> = applied.iter().map(policy_value).collect();
        let value = json!({"endpoint": endpoint.map(|key| key.to_string()), "policies": policies});
        writeln!(out, "{value}")?;
        return Ok(());
    }
    let Some(endpoint) = endpoint else {
        writeln!(out, "{asked} has no endpoint that policy could apply to")?;
        return Ok(());
    };
    if applied.is_empty() {
        writeln!(out, "No policy applies to {endpoint}; its profiles decide")?;
        return Ok(());
    }
    let headings = ["TIER", "ORDER", "POLICY", "GOVERNS", "REMARK"];
    let mut table = Table::new(headings.map(str::to_owned).to_vec());
    for policy in &applied {
        let order = policy
            .order
            .map_or("-".to_owned(), |order| order.to_string());
        table.add(vec![
            policy.tier.clone(),
            order,
            policy.id.full_name(),
            directions(policy).join(", "),
            remarks(policy).join(", "),
        ]);
    }
    table.write(out)?;
    Ok(())
}

fn policy_value(policy: &AppliedPolicy) -> Value {
    let mut value = json!({
        "tier": policy.tier,
        "order": policy.order,
        "policy": policy.id,
        "types": directions(policy),
        "staged": policy.staged,
    });
    if policy.point != Point::Normal {
        value["point"] = json!(policy.point);
    }
    if policy.on_forward {
        value["applyOnForward"] = true.into();
    }
    value
}

fn directions(policy: &AppliedPolicy) -> Vec<&'static str> {
    let all = [(policy.ingress, "Ingress"), (policy.egress, "Egress")];
    let governed = all.into_iter().filter(|(is_governed, _)| *is_governed);
    governed.map(|(_, name)| name).collect()
}

fn remarks(policy: &AppliedPolicy) -> Vec<&'static str> {
    let mut remarks = Vec::new();
    if policy.staged {
        remarks.push("staged: not enforced");
    }
    match policy.point {
        Point::Normal => {}
        Point::Untracked => remarks.push("before connection tracking"),
        Point::PreDnat => remarks.push("before destination NAT"),
        Point::Forward => remarks.push("where packets are forwarded"),
    }
    if policy.on_forward {
        remarks.push("also on forwarded packets");
    }
    remarks
}

/// Writes the endpoints that a policy applies to.
pub(super) fn endpoints(
    world: &World,
    asked: &str,
    output: WhyOutput,
    out: &mut impl Write,
) -> Result<()> {
    let candidates = ids(asked)?;
    let found = candidates
        .iter()
        .find_map(|id| Some((id, world.engine.endpoints_of(id)?)));
    let Some((id, endpoints)) = found else {
        return Err(world.directory.no_policy(asked, &candidates[0]));
    };
    let mut endpoints: Vec<String> = endpoints.iter().map(EndpointKey::to_string).collect();
    endpoints.sort_unstable();
    if output == WhyOutput::Json {
        writeln!(out, "{}", json!({"policy": id, "endpoints": endpoints}))?;
        return Ok(());
    }
    for endpoint in &endpoints {
        writeln!(out, "{endpoint}")?;
    }
    if endpoints.is_empty() {
        writeln!(out, "{} applies to no endpoint", id.full_name())?;
    }
    Ok(())
}

/// The policies that `KIND/NAME` or `KIND/NAMESPACE/NAME` can mean, the most usual meaning first. What Calico calls a
/// network policy may also be one of Kubernetes' own.
fn ids(asked: &str) -> Result<Vec<PolicyId>> {
    let parts: Vec<&str> = asked.split('/').collect();
    let (word, namespace, name) = match parts[..] {
        [word, name] => (word, None, name),
        [word, namespace, name] => (word, Some(namespace), name),
        _ => bail!("policy `{asked}` must be KIND/NAME or KIND/NAMESPACE/NAME"),
    };
    let own = PolicyKind::ALL.into_iter().find(|kind| {
        kind.name().eq_ignore_ascii_case(word) || kind.short_name().eq_ignore_ascii_case(word)
    });
    let own = match own {
        // The same words as elsewhere come first.
        Some(kind) if tortie_api::Kind::from_word(word).is_none() => Some(kind),
        _ if word.eq_ignore_ascii_case("ClusterNetworkPolicy") => {
            Some(PolicyKind::KubernetesClusterNetworkPolicy)
        }
        _ => None,
    };
    let id = |kind: PolicyKind| PolicyId {
        kind,
        namespace: if is_namespaced(kind) {
            namespace.unwrap_or("default").to_owned()
        } else {
            String::new()
        },
        name: name.to_owned(),
    };
    if let Some(kind) = own {
        check_namespace(asked, namespace, is_namespaced(kind))?;
        return Ok(vec![id(kind)]);
    }
    let kind = kinds::parse(word)?;
    check_namespace(asked, namespace, kind.is_namespaced())?;
    let Some(first) = policy_id(kind, namespace.unwrap_or("default"), name) else {
        bail!("`{asked}` does not name a policy: {kind} is not a kind of policy");
    };
    let second = match first.kind {
        PolicyKind::NetworkPolicy => Some(id(PolicyKind::KubernetesNetworkPolicy)),
        _ => None,
    };
    Ok([first].into_iter().chain(second).collect())
}

fn check_namespace(asked: &str, namespace: Option<&str>, is_namespaced: bool) -> Result<()> {
    if let Some(namespace) = namespace.filter(|_| !is_namespaced) {
        bail!(
            "`{asked}` names the namespace `{namespace}`, but this kind of policy is cluster-wide"
        );
    }
    Ok(())
}

fn is_namespaced(kind: PolicyKind) -> bool {
    !matches!(
        kind,
        PolicyKind::GlobalNetworkPolicy
            | PolicyKind::KubernetesClusterNetworkPolicy
            | PolicyKind::StagedGlobalNetworkPolicy
    )
}
