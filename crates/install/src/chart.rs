//! The chart, and the objects that it makes.

use serde_json::{Value, json};
use tortie_api::crd;

use crate::template::{self, Template};
use crate::values::{DatastoreType, Values};

/// The files with objects, in the order in which they are applied.
const TEMPLATES: [(&str, &str); 7] = [
    (
        "accounts.yaml",
        include_str!("../../../deploy/helm/tortie/templates/accounts.yaml"),
    ),
    (
        "node-rights.yaml",
        include_str!("../../../deploy/helm/tortie/templates/node-rights.yaml"),
    ),
    (
        "cni-plugin-rights.yaml",
        include_str!("../../../deploy/helm/tortie/templates/cni-plugin-rights.yaml"),
    ),
    (
        "controllers-rights.yaml",
        include_str!("../../../deploy/helm/tortie/templates/controllers-rights.yaml"),
    ),
    (
        "config.yaml",
        include_str!("../../../deploy/helm/tortie/templates/config.yaml"),
    ),
    (
        "node.yaml",
        include_str!("../../../deploy/helm/tortie/templates/node.yaml"),
    ),
    (
        "controllers.yaml",
        include_str!("../../../deploy/helm/tortie/templates/controllers.yaml"),
    ),
];

/// The version of the program that the chart of this version installs.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Where the chart is installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    /// The namespace of its objects.
    pub namespace: String,
}

/// All templates, read.
#[derive(Debug)]
pub struct Chart {
    templates: Vec<Template>,
}

/// All objects, in the order in which they are applied.
#[derive(Debug, Clone, PartialEq)]
pub struct Rendered {
    /// Definitions of custom resources, where resources are kept as such.
    pub definitions: Vec<Value>,
    /// The namespace of the others.
    pub namespace: Value,
    /// What the chart makes.
    pub objects: Vec<Value>,
}

/// A chart that cannot be rendered.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A template, or what it needs.
    #[error(transparent)]
    Template(#[from] template::Error),
    /// What came out is no YAML: a value has a form that does not fit where it stands.
    #[error("{template}: with these values it is not YAML")]
    Yaml {
        /// The file.
        template: &'static str,
        /// Why.
        source: tortie_api::yaml::Error,
    },
}

impl Chart {
    /// The chart of this version.
    pub fn new() -> Result<Self, Error> {
        let parsed = TEMPLATES.map(|(name, text)| Template::parse(name, text));
        let templates: Result<_, _> = parsed.into_iter().collect();
        Ok(Self {
            templates: templates?,
        })
    }

    /// The objects that follow from the values.
    pub fn render(&self, values: &Values, release: &Release) -> Result<Rendered, Error> {
        let data = json!({
            "Values": values,
            "Release": {"Namespace": release.namespace},
            "Chart": {"AppVersion": VERSION},
        });
        let mut objects = Vec::new();
        for (template, (name, _)) in self.templates.iter().zip(TEMPLATES) {
            let text = template.render(&data)?;
            let documents = tortie_api::yaml::parse(&text);
            let documents = documents.map_err(|source| Error::Yaml {
                template: name,
                source,
            })?;
            objects.extend(documents.into_iter().filter(|object| !object.is_null()));
        }
        Ok(Rendered {
            definitions: definitions(values),
            namespace: namespace(release),
            objects,
        })
    }
}

fn definitions(values: &Values) -> Vec<Value> {
    match values.datastore.r#type {
        DatastoreType::Etcd => Vec::new(),
        DatastoreType::Kubernetes => crd::manifests(values.datastore.api_group.definitions()),
    }
}

/// Pods there have the node's network and folders, which the namespace has to allow.
fn namespace(release: &Release) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": release.namespace,
            "labels": {
                "app.kubernetes.io/part-of": "tortie",
                "pod-security.kubernetes.io/enforce": "privileged",
            },
        },
    })
}

impl Rendered {
    /// All of them, in order.
    pub fn all(&self) -> impl Iterator<Item = &Value> {
        let first = std::iter::once(&self.namespace);
        first.chain(&self.definitions).chain(&self.objects)
    }
}
