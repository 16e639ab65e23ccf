//! Where values come from.

mod felix_configuration;
mod field;
mod file;
mod given;

use std::{borrow::Cow, collections::BTreeMap, ffi::OsString, fmt};

pub use felix_configuration::{from_cluster_information, from_felix_configuration};
pub use file::{FileError, from_file};
pub use given::Given;
use serde::Serialize;

/// What names of variables in the environment start with, in any case.
const PREFIX: &str = "felix_";

/// What each source gives for parameters, by name. Names may be in any case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sources {
    /// Variables of the environment, without their prefix.
    pub environment: BTreeMap<String, String>,
    /// The configuration file.
    pub file: BTreeMap<String, String>,
    pub datastore: DatastoreConfig,
    /// Whether whoever started the agent said that packets may go in clear text where they should be encrypted.
    pub allows_cleartext: bool,
}

/// Parameters of one node, as the datastore has them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DatastoreConfig {
    /// For all nodes.
    pub global: BTreeMap<String, Given>,
    /// For nodes that a selector selects.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub selected: BTreeMap<String, Given>,
    /// For this node.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub node: BTreeMap<String, Given>,
}

/// Where a value came from, from the source that wins to the one that loses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// A variable of the environment.
    Environment,
    /// The configuration file.
    File,
    /// The datastore, for this node.
    Node,
    /// The datastore, for nodes that a selector selects.
    Selected,
    /// The datastore, for all nodes.
    Global,
    /// Nowhere: the default.
    Default,
}

/// What a source gives, by the name of the parameter.
type ByName<'a> = Vec<(&'a str, Cow<'a, Given>)>;

// === impl Sources ===

impl Sources {
    /// All sources, from the one that wins to the one that loses.
    pub(super) fn by_precedence(&self) -> [(Origin, ByName<'_>); 5] {
        [
            (Origin::Environment, texts(&self.environment)),
            (Origin::File, texts(&self.file)),
            (Origin::Node, fields(&self.datastore.node)),
            (Origin::Selected, fields(&self.datastore.selected)),
            (Origin::Global, fields(&self.datastore.global)),
        ]
    }
}

fn texts(source: &BTreeMap<String, String>) -> ByName<'_> {
    let texts = source.iter();
    texts
        .map(|(name, text)| (&**name, Cow::Owned(Given::Text(text.clone()))))
        .collect()
}

fn fields(source: &BTreeMap<String, Given>) -> ByName<'_> {
    let given = source.iter();
    given
        .map(|(name, given)| (&**name, Cow::Borrowed(given)))
        .collect()
}

// === impl DatastoreConfig ===

impl DatastoreConfig {
    /// Removes a parameter, whose name may be in any case.
    pub fn forget(&mut self, parameter: &str) {
        for parameters in [&mut self.node, &mut self.selected, &mut self.global] {
            parameters.retain(|name, _| !name.eq_ignore_ascii_case(parameter));
        }
    }
}

// === impl Origin ===

impl Origin {
    /// Whether this is the machine itself rather than the datastore.
    pub fn is_local(self) -> bool {
        matches!(self, Self::Environment | Self::File | Self::Default)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Environment => "the environment",
            Self::File => "the configuration file",
            Self::Node => "the datastore, for this node",
            Self::Selected => "the datastore, for selected nodes",
            Self::Global => "the datastore, for all nodes",
            Self::Default => "the default",
        })
    }
}

/// The variables `FELIX_<name>`, in any case, by name in lower case.
///
/// Takes what [`std::env::vars_os`] gives. Bytes that are not UTF-8 become U+FFFD, so that the value is refused rather
/// than overlooked.
pub fn from_environment(
    variables: impl IntoIterator<Item = (OsString, OsString)>,
) -> BTreeMap<String, String> {
    variables
        .into_iter()
        .filter_map(|(name, value)| {
            let name = name.to_string_lossy().to_lowercase();
            let name = name.strip_prefix(PREFIX)?;
            Some((name.to_owned(), value.to_string_lossy().into_owned()))
        })
        .collect()
}
