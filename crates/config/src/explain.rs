//! The configuration as told to people.

use super::resolve::{Resolved, Setting};
use super::source::Origin;

/// What a datastore says of itself, and nobody sets.
const FACTS: [&str; 2] = ["ClusterGUID", "CalicoVersion"];

/// What is the case whatever is set; a node's start sets it.
const DONE: [(&str, &str); 1] = [("ReportingIntervalSecs", "0")];

/// Where the datastore is. Who starts the agent reads that in the environment, and opens it.
const STARTED_WITH: [&str; 7] = [
    "DatastoreType",
    "EtcdAddr",
    "EtcdScheme",
    "EtcdKeyFile",
    "EtcdCertFile",
    "EtcdCaFile",
    "EtcdEndpoints",
];

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

/// A parameter that is set to something that the agent does not do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WithoutEffect {
    /// Name of the parameter.
    pub name: &'static str,
    /// Its value, as it was written.
    pub value: String,
    /// Where the value came from.
    pub origin: Origin,
    /// What is the case instead.
    pub consequence: &'static str,
}

/// The parameters that are set to other than their default, and not acted on.
pub fn without_effect(resolved: &Resolved) -> Vec<WithoutEffect> {
    let set = resolved.settings.iter().filter(|setting| {
        !setting.parameter.acted_on
            && !FACTS.contains(&setting.parameter.name)
            && !DONE.contains(&(setting.parameter.name, setting.text.as_str()))
            && !is_started_with(setting)
            && setting.origin != Origin::Default
            && setting.value != setting.parameter.default_value()
    });
    set.map(|setting| WithoutEffect {
        name: setting.parameter.name,
        value: setting.text.clone(),
        origin: setting.origin,
        consequence: setting.parameter.consequence,
    })
    .collect()
}

fn is_started_with(setting: &Setting) -> bool {
    setting.origin == Origin::Environment && STARTED_WITH.contains(&setting.parameter.name)
}

impl std::fmt::Display for WithoutEffect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            name,
            value,
            origin,
            consequence,
        } = self;
        write!(
            f,
            "{name}: `{value}` ({origin}) has no effect: {consequence}"
        )
    }
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
