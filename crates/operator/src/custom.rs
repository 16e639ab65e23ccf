//! Custom resources: a kind of one's own, made of a specification and a status.

use std::borrow::Cow;
use std::fmt::Debug;

use k8s_openapi::ClusterResourceScope;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionNames, CustomResourceDefinitionSpec,
    CustomResourceDefinitionVersion, CustomResourceSubresourceStatus, CustomResourceSubresources,
    CustomResourceValidation, JSONSchemaProps,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde::ser::SerializeStruct as _;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Value, json};

/// What makes a type the specification of a kind.
///
/// ```
/// use schemars::{JsonSchema, SchemaGenerator};
/// use serde::{Deserialize, Serialize};
/// use tortie_operator::{Custom, CustomKind};
///
/// /// A gate that is open or closed.
/// #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
/// pub struct GateSpec {
///     /// Whether it is open.
///     pub open: bool,
/// }
///
/// impl CustomKind for GateSpec {
///     const GROUP: &'static str = "example.org";
///     const VERSION: &'static str = "v1";
///     const KIND: &'static str = "Gate";
///     const PLURAL: &'static str = "gates";
///     type Scope = k8s_openapi::NamespaceResourceScope;
///     type Status = ();
/// }
///
/// type Gate = Custom<GateSpec>;
///
/// let gate = Gate::new("front", GateSpec { open: true });
/// assert_eq!(serde_json::to_value(&gate).unwrap()["kind"], "Gate");
/// assert_eq!(Gate::definition().unwrap().metadata.name.as_deref(), Some("gates.example.org"));
/// ```
pub trait CustomKind:
    Clone + Debug + Serialize + DeserializeOwned + JsonSchema + Send + Sync + 'static
{
    /// The group, such as `example.org`.
    const GROUP: &'static str;
    /// The version, such as `v1`.
    const VERSION: &'static str;
    /// The kind, in camel case.
    const KIND: &'static str;
    /// The kind in the plural, in lower case, as in addresses.
    const PLURAL: &'static str;
    /// `NamespaceResourceScope` or `ClusterResourceScope` of `k8s_openapi`.
    type Scope: 'static;
    /// What the controller says of an object.
    type Status: Clone + Debug + Serialize + DeserializeOwned + JsonSchema + Send + Sync + 'static;
}

/// An object of one's own kind.
#[derive(Clone, Debug, Deserialize)]
#[serde(bound = "")]
pub struct Custom<S: CustomKind> {
    /// Name, labels and the like.
    pub metadata: ObjectMeta,
    /// What is wanted.
    pub spec: S,
    /// What is.
    #[serde(default = "none")]
    pub status: Option<S::Status>,
}

/// `default` alone would ask for a default of the status itself.
fn none<T>() -> Option<T> {
    None
}

impl<S: CustomKind> Custom<S> {
    /// An object without a status.
    pub fn new(name: impl Into<String>, spec: S) -> Self {
        Self {
            metadata: ObjectMeta {
                name: Some(name.into()),
                ..ObjectMeta::default()
            },
            spec,
            status: None,
        }
    }

    /// The definition that tells the API server of the kind. Fails for types that its schemas cannot express.
    pub fn definition() -> Result<CustomResourceDefinition, serde_json::Error> {
        let is_cluster = is_cluster_scope::<S>();
        let (group, plural) = (S::GROUP, S::PLURAL);
        Ok(CustomResourceDefinition {
            metadata: ObjectMeta {
                name: Some(format!("{plural}.{group}")),
                ..ObjectMeta::default()
            },
            spec: CustomResourceDefinitionSpec {
                group: group.to_owned(),
                names: CustomResourceDefinitionNames {
                    kind: S::KIND.to_owned(),
                    list_kind: Some(format!("{}List", S::KIND)),
                    plural: plural.to_owned(),
                    singular: Some(S::KIND.to_lowercase()),
                    ..CustomResourceDefinitionNames::default()
                },
                scope: if is_cluster { "Cluster" } else { "Namespaced" }.to_owned(),
                versions: vec![CustomResourceDefinitionVersion {
                    name: S::VERSION.to_owned(),
                    served: true,
                    storage: true,
                    schema: Some(CustomResourceValidation {
                        open_api_v3_schema: Some(schema::<S>()?),
                    }),
                    subresources: Some(CustomResourceSubresources {
                        status: Some(CustomResourceSubresourceStatus(json!({}))),
                        ..CustomResourceSubresources::default()
                    }),
                    ..CustomResourceDefinitionVersion::default()
                }],
                ..CustomResourceDefinitionSpec::default()
            },
            status: None,
        })
    }
}

fn is_cluster_scope<S: CustomKind>() -> bool {
    use std::any::TypeId;
    TypeId::of::<S::Scope>() == TypeId::of::<ClusterResourceScope>()
}

fn schema<S: CustomKind>() -> Result<JSONSchemaProps, serde_json::Error> {
    let mut settings = SchemaSettings::openapi3();
    // The API server takes no references.
    settings.inline_subschemas = true;
    let schema_of = |make: fn(&mut SchemaGenerator) -> schemars::Schema| {
        let mut schema = make(&mut settings.clone().into_generator()).to_value();
        simplify(&mut schema);
        schema
    };
    let spec = schema_of(SchemaGenerator::root_schema_for::<S>);
    let status = schema_of(SchemaGenerator::root_schema_for::<Option<S::Status>>);
    let description = spec.get("description").cloned().unwrap_or(Value::Null);
    serde_json::from_value(json!({
        "type": "object",
        "description": description,
        "properties": {"spec": spec, "status": status},
        "required": ["spec"],
    }))
}

/// Removes what schemas of the API server cannot have.
fn simplify(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            for name in ["$schema", "title"] {
                // A property of that name is an object; the keyword is text.
                if fields.get(name).is_some_and(Value::is_string) {
                    fields.remove(name);
                }
            }
            fields.values_mut().for_each(simplify);
        }
        Value::Array(items) => items.iter_mut().for_each(simplify),
        _ => {}
    }
}

impl<S: CustomKind> Serialize for Custom<S> {
    fn serialize<T: Serializer>(&self, serializer: T) -> Result<T::Ok, T::Error> {
        let fields = 4 + usize::from(self.status.is_some());
        let mut object = serializer.serialize_struct("Custom", fields)?;
        object.serialize_field("apiVersion", &Self::api_version(&()))?;
        object.serialize_field("kind", S::KIND)?;
        object.serialize_field("metadata", &self.metadata)?;
        object.serialize_field("spec", &self.spec)?;
        if let Some(status) = &self.status {
            object.serialize_field("status", status)?;
        }
        object.end()
    }
}

impl<S: CustomKind> Resource for Custom<S> {
    type DynamicType = ();
    type Scope = S::Scope;

    fn kind((): &()) -> Cow<'_, str> {
        S::KIND.into()
    }

    fn group((): &()) -> Cow<'_, str> {
        S::GROUP.into()
    }

    fn version((): &()) -> Cow<'_, str> {
        S::VERSION.into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        S::PLURAL.into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
