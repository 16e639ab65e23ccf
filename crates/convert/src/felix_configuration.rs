//! Settings of the node agent, and the nodes that they are for.

use tortie_api::{FelixConfiguration, Path, Problems};
use tortie_config::from_felix_configuration;

use super::{DEFAULT, read};
use tortie_engine::input::Configuration;

/// What the names of resources for one node start with.
const NODE: &str = "node.";

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
    Some(Configuration {
        node_selector: selector.unwrap_or_default().to_owned(),
        created: metadata
            .creation_timestamp
            .as_ref()
            .map(|time| time.0.as_second()),
        parameters: from_felix_configuration(resource),
    })
}
