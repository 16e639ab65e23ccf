//! Settings of the node agent: the fields of the resource as parameters, which are texts by name.
//!
//! An annotation can set a parameter, too. It wins over the field and is not checked, which makes it the way around a
//! field that is missing or too strict.

mod parameters;
mod value;

use tortie_api::{FelixConfiguration, Path, Problems};

use super::{DEFAULT, read};
use tortie_engine::input::Configuration;

/// What the names of resources for one node start with.
const NODE: &str = "node.";

/// What annotations that set a parameter start with.
const ANNOTATION: &str = "config.projectcalico.org/";

/// Converts settings. Those with a selector for nodes that cannot be read are for no node.
pub(super) fn configuration(
    resource: &FelixConfiguration,
    problems: &mut Problems,
) -> Option<Configuration> {
    let (metadata, spec) = (&resource.metadata, &resource.spec);
    let is_selected = metadata.name != DEFAULT && !metadata.name.starts_with(NODE);
    let selector = spec.node_selector.as_deref().filter(|_| is_selected);
    if let Some(selector) = selector {
        let root = Path::ROOT;
        let at = root.field("spec");
        read::selector(&at.field("nodeSelector"), selector, problems)?;
    }
    let mut parameters = parameters::parameters(spec);
    for (key, value) in &metadata.annotations {
        if let Some(name) = key.strip_prefix(ANNOTATION) {
            parameters.insert(name.to_owned(), value.clone());
        }
    }
    Some(Configuration {
        node_selector: selector.unwrap_or_default().to_owned(),
        created: metadata
            .creation_timestamp
            .as_ref()
            .map(|time| time.0.as_second()),
        parameters,
    })
}
