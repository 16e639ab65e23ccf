//! What policies cost in the kernel.

use std::io;

use tortie_dataplane::{DesiredState, PolicyCost};
use tortie_rules::MAX_POLICY_RULES;

use crate::output::Table;

/// A row for each policy that applies on the node, the largest first.
pub(super) fn table(world: &DesiredState) -> io::Result<String> {
    let headings = [
        "KIND",
        "NAMESPACE",
        "NAME",
        "RULES",
        "SETS",
        "MEMBERS",
        "NOTE",
    ];
    let mut table = Table::new(headings.map(str::to_owned).into());
    for cost in world.policy_costs() {
        table.add(row(&cost));
    }
    let mut text = Vec::new();
    table.write(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn row(cost: &PolicyCost) -> Vec<String> {
    let note = if cost.is_too_large {
        format!("denies all: more than {MAX_POLICY_RULES} rules in one chain")
    } else {
        String::new()
    };
    vec![
        cost.policy.kind.to_string(),
        cost.policy.namespace.clone(),
        cost.policy.name.clone(),
        cost.rules.to_string(),
        cost.sets.to_string(),
        cost.members.to_string(),
        note,
    ]
}
