//! What services must look like.

use std::collections::HashSet;

use serde_json::Value;
use tortie_api::{Path, Problems};

use super::form::{HEADLESS, address, items, needs_address, ports};

const TYPES: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];

/// What is wrong with a service.
pub(in crate::storage) fn check(service: &Value, problems: &mut Problems) {
    let root = Path::ROOT;
    let at = root.field("spec");
    let spec = &service["spec"];
    if !spec.is_object() {
        return problems.add_missing(&at, "must be given");
    }
    let own = spec["type"].as_str().unwrap_or_default();
    if !TYPES.contains(&own) {
        let rule = format!("must be one of {}", TYPES.join(", "));
        return problems.add(&at.field("type"), own, rule);
    }
    let is_headless = address(spec) == Some(HEADLESS);
    if needs_address(spec) {
        check_addresses(spec, &at, problems);
        if !is_headless && ports(spec).next().is_none() {
            problems.add_missing(&at.field("ports"), "must name at least one");
        }
    } else {
        let name = spec["externalName"].as_str().unwrap_or_default();
        if name.is_empty() {
            let rule = "must be given for services of type ExternalName";
            problems.add_missing(&at.field("externalName"), rule);
        }
        if address(spec).is_some() {
            let rule = "may not be set for services of type ExternalName";
            problems.add(&at.field("clusterIP"), address(spec), rule);
        }
    }
    if is_headless && own != "ClusterIP" {
        let rule = format!("may not be set to 'None' for {own} services");
        problems.add(&at.field("clusterIP"), HEADLESS, rule);
    }
    check_ports(spec, &at, problems);
}

fn check_addresses(spec: &Value, at: &Path<'_>, problems: &mut Problems) {
    let first = &spec["clusterIPs"][0];
    let single = spec["clusterIP"].as_str().unwrap_or_default();
    if first.is_string() && !single.is_empty() && first != single {
        let rule = format!("first value must match `clusterIP`, {single:?}");
        problems.add(&at.field("clusterIPs"), first, rule);
    }
    let is_dual = items(&spec["clusterIPs"]).count() > 1
        || items(&spec["ipFamilies"]).count() > 1
        || spec["ipFamilyPolicy"] == "RequireDualStack";
    if is_dual {
        let rule = "Cluster is not configured for dual-stack services: give one address or family";
        problems.add(&at.field("ipFamilyPolicy"), &spec["ipFamilyPolicy"], rule);
    }
}

fn check_ports(spec: &Value, at: &Path<'_>, problems: &mut Problems) {
    let list = at.field("ports");
    let is_one = ports(spec).count() == 1;
    let mut names = HashSet::new();
    let mut numbers = HashSet::new();
    for (index, port) in ports(spec).enumerate() {
        let at = list.index(index);
        let name = port["name"].as_str().unwrap_or_default();
        if name.is_empty() && !is_one {
            problems.add_missing(
                &at.field("name"),
                "must be given where there are several ports",
            );
        } else if !names.insert(name) {
            problems.add(&at.field("name"), name, "must be unique");
        }
        let number = port["port"].as_i64().unwrap_or_default();
        if !(1..=65_535).contains(&number) {
            problems.add(
                &at.field("port"),
                number,
                "must be between 1 and 65535, inclusive",
            );
        }
        let protocol = port["protocol"].as_str().unwrap_or_default();
        if !matches!(protocol, "TCP" | "UDP" | "SCTP") {
            problems.add(&at.field("protocol"), protocol, "must be TCP, UDP or SCTP");
        } else if !numbers.insert((protocol, number)) {
            let rule = "must be of another number or protocol than the others";
            problems.add(&at.field("port"), number, rule);
        }
        if let Some(target) = port["targetPort"].as_i64()
            && !(1..=65_535).contains(&target)
        {
            problems.add(
                &at.field("targetPort"),
                target,
                "must be between 1 and 65535, inclusive",
            );
        }
    }
}

/// What may not be made of a service that is there.
pub(super) fn check_change(old: &Value, new: &Value, problems: &mut Problems) {
    let (before, after) = (&old["spec"], &new["spec"]);
    let root = Path::ROOT;
    let at = root.field("spec");
    if needs_address(before)
        && needs_address(after)
        && let Some(own) = address(before)
        && address(after).is_some_and(|wanted| wanted != own)
    {
        let at = at.field("clusterIPs");
        problems.add(
            &at.index(0),
            address(after),
            format!("may not change once set: it is {own}"),
        );
    }
}
