//! What only Calico's own programs write, in the datastore itself.

use tortie_api::Kind;

use crate::access::Attributes;
use crate::failure::{Failure, Reason, Result};

/// Fails for writes that are not offered here, with Calico's words.
pub(super) fn check(attributes: &Attributes<'_>) -> Result<()> {
    let verb = match attributes.verb {
        "create" => "Create",
        "update" | "patch" => "Update",
        "delete" | "deletecollection" => "Delete",
        _ => return Ok(()),
    };
    let Attributes {
        group, resource, ..
    } = attributes;
    let message = if *resource == Kind::ClusterInformation.plural() {
        format!("{verb} is not supported on resources of kind \"{resource}.{group}\"")
    } else if *resource == Kind::BlockAffinity.plural() {
        let verb = verb.to_ascii_lowercase();
        format!("unable to {verb} block affinity. Block affinity resources are read-only")
    } else {
        return Ok(());
    };
    Err(Failure::new(Reason::MethodNotAllowed, message))
}
