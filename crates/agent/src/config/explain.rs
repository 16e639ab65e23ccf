//! The configuration as told to people.

use super::resolve::Resolved;
use super::source::Origin;

/// One parameter, its value and where that came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explained {
    /// Name of the parameter.
    pub name: &'static str,
    /// Its value, as it was written.
    pub value: String,
    /// Where the value came from.
    pub origin: Origin,
    /// The value that it would have if nothing set it.
    pub default: &'static str,
    /// Whether the agent does something with it.
    pub acted_on: bool,
    /// What it is for.
    pub meaning: &'static str,
}

/// All parameters, by subject.
pub fn explain(resolved: &Resolved) -> Vec<Explained> {
    resolved
        .settings
        .iter()
        .map(|setting| Explained {
            name: setting.parameter.name,
            value: setting.text.clone(),
            origin: setting.origin,
            default: setting.parameter.default,
            acted_on: setting.parameter.acted_on,
            meaning: setting.parameter.meaning,
        })
        .collect()
}
