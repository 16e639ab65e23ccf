//! What the API server asks before it stores an object.

use tortie_operator::webhook::{Refusal, Review};

use crate::resource::NamespaceBaseline;

const DIRECTIONS: [&str; 2] = ["Ingress", "Egress"];

/// Writes down what was left open, so that everyone sees it.
pub async fn complete(
    _: Review<NamespaceBaseline>,
    mut object: NamespaceBaseline,
) -> Result<NamespaceBaseline, Refusal> {
    let spec = &mut object.spec;
    if spec.directions.is_empty() {
        spec.directions = DIRECTIONS.map(str::to_owned).to_vec();
    }
    spec.allow_dns.get_or_insert(true);
    Ok(object)
}

/// Refuses what cannot be meant, and warns of what is probably not.
pub async fn check(review: Review<NamespaceBaseline>) -> Result<Vec<String>, Refusal> {
    let Some(object) = review.object else {
        return Ok(Vec::new());
    };
    let mut problems = Vec::new();
    for (index, direction) in object.spec.directions.iter().enumerate() {
        if !DIRECTIONS.contains(&direction.as_str()) {
            let problem = format!("`{direction}` is neither Ingress nor Egress");
            problems.push((format!("spec.directions[{index}]"), problem));
        }
    }
    if !problems.is_empty() {
        return Err(Refusal::invalid(problems));
    }
    let mut warnings = Vec::new();
    if object.spec.namespace_labels.is_empty() {
        warnings.push("no labels are given: every namespace is selected".to_owned());
    }
    Ok(warnings)
}
