//! Objects of both kinds that writers change over and over, and how they do it.

use kube::Api;
use kube::api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, PostParams};
use serde_json::{Value, json};

/// How much an object holds besides its number.
const PADDING: usize = 200;

/// The kinds that are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Written {
    ConfigMap,
    NetworkSet,
}

impl Written {
    pub(crate) const ALL: [Self; 2] = [Self::ConfigMap, Self::NetworkSet];

    pub(crate) fn resource(self) -> ApiResource {
        let (group, version, kind) = match self {
            Self::ConfigMap => ("", "v1", "ConfigMap"),
            Self::NetworkSet => ("projectcalico.org", "v3", "GlobalNetworkSet"),
        };
        ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
    }

    pub(crate) fn api(self, client: &kube::Client) -> Api<DynamicObject> {
        match self {
            Self::ConfigMap => Api::namespaced_with(client.clone(), "default", &self.resource()),
            Self::NetworkSet => Api::all_with(client.clone(), &self.resource()),
        }
    }

    /// An object that holds a number, in two places.
    fn object(self, name: &str, number: u64) -> DynamicObject {
        let text = number.to_string();
        let content = match self {
            Self::ConfigMap => json!({
                "metadata": {"name": name, "labels": {"number": text}},
                "data": {"number": text, "padding": "x".repeat(PADDING)},
            }),
            Self::NetworkSet => json!({
                "metadata": {"name": name, "labels": {"number": text}},
                "spec": {"nets": [net(number)]},
            }),
        };
        let mut content = content;
        content["apiVersion"] = json!(self.resource().api_version);
        content["kind"] = json!(self.resource().kind);
        serde_json::from_value(content).unwrap()
    }

    /// The number that an object holds, if it is whole.
    #[track_caller]
    pub(crate) fn number(self, object: &DynamicObject) -> u64 {
        let label = object
            .metadata
            .labels
            .as_ref()
            .map(|labels| &labels["number"]);
        let number: u64 = label.unwrap().parse().unwrap();
        let content = match self {
            Self::ConfigMap => object.data["data"]["number"].clone(),
            Self::NetworkSet => object.data["spec"]["nets"][0].clone(),
        };
        let expected = match self {
            Self::ConfigMap => Value::from(number.to_string()),
            Self::NetworkSet => Value::from(net(number)),
        };
        assert_eq!(
            content, expected,
            "{object:?} is half of one and half of another"
        );
        number
    }
}

fn net(number: u64) -> String {
    let [.., a, b, c] = number.to_be_bytes();
    format!("10.{a}.{b}.{c}/32")
}

/// What a writer does to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Create(u64),
    Update(u64),
    Delete,
}

impl Step {
    /// What the object holds afterwards.
    pub(crate) fn result(self) -> Option<u64> {
        match self {
            Self::Create(number) | Self::Update(number) => Some(number),
            Self::Delete => None,
        }
    }

    /// Does it. Gives the revision that the server answered, which it does not for deletions.
    pub(crate) async fn take(
        self,
        api: &Api<DynamicObject>,
        of: Written,
        name: &str,
    ) -> kube::Result<Option<u64>> {
        let options = PostParams::default();
        let stored = match self {
            Self::Create(number) => api.create(&options, &of.object(name, number)).await?,
            Self::Update(number) => {
                api.replace(name, &options, &of.object(name, number))
                    .await?
            }
            Self::Delete => {
                api.delete(name, &DeleteParams::default()).await?;
                return Ok(None);
            }
        };
        Ok(Some(revision(&stored)))
    }
}

/// The revision of an object.
pub(crate) fn revision(object: &DynamicObject) -> u64 {
    let revision = object.metadata.resource_version.as_deref();
    revision.and_then(|revision| revision.parse().ok()).unwrap()
}
