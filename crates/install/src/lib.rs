//! What Tortie is made of in a cluster: the Helm chart of `deploy/helm`, which is the one source, its values, and the objects that
//! follow from them.

pub mod apply;
mod chart;
pub mod cluster;
mod template;
mod values;

pub use chart::{Chart, Error as ChartError, Release, Rendered};
pub use template::Error as TemplateError;
pub use values::{ApiGroup, DEFAULTS, Values, ValuesError, schema};

use serde_json::Value;

/// As files for people and for `kubectl` have it.
pub fn to_yaml(object: &Value) -> Result<String, serde_saphyr::ser::Error> {
    serde_saphyr::to_string(object)
}
