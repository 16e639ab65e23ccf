//! What can be done at which path, in the words of both versions.

mod parameters;

pub(super) use parameters::shared_parameters;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{DeleteOptions, Patch, Status};
use serde_json::{Map, Value, json};

use self::parameters::{
    DELETING, PATCHING, PRETTY, Parameter, RESOURCE_VERSION, SELECTION, WATCHING, WRITING,
    path_parameter, query_parameter,
};
use super::definitions::{name_of, name_of_kind, name_of_list};
use super::schema::{V2_PREFIX, V3_PREFIX};
use crate::registry::{Content, ResourceType};

/// Which version a document is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Version 2.
    V2,
    /// Version 3.
    V3,
}

/// What is done at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Get,
    List,
    Post,
    Put,
    Patch,
    Delete,
    DeleteCollection,
}

use Action::{Delete, DeleteCollection, Get, List, Post, Put};

/// The paths of a resource.
pub(super) fn of(resource: &ResourceType, form: Form) -> Vec<(String, Value)> {
    let root = match resource.group {
        "" => format!("/api/{}", resource.version),
        group => format!("/apis/{group}/{}", resource.version),
    };
    let (collection, in_path): (_, &[&str]) = if resource.is_namespaced {
        let collection = format!("{root}/namespaces/{{namespace}}/{}", resource.plural);
        (collection, &["namespace"])
    } else {
        (format!("{root}/{}", resource.plural), &[])
    };
    let object = format!("{collection}/{{name}}");
    let status = format!("{object}/status");
    let with_name: Vec<_> = in_path.iter().copied().chain(["name"]).collect();

    let path = Path {
        resource,
        form,
        part: "",
    };
    if !resource.is_stored() {
        return vec![(collection, path.item(in_path, &[Post]))];
    }
    let mut paths = vec![
        (
            collection,
            path.item(in_path, &[List, Post, DeleteCollection]),
        ),
        (
            object,
            path.item(&with_name, &[Get, Put, Action::Patch, Delete]),
        ),
    ];
    if resource.has_status {
        let path = Path {
            part: "Status",
            ..path
        };
        paths.push((status, path.item(&with_name, &[Get, Put, Action::Patch])));
    }
    if resource.is_namespaced {
        let path = Path {
            part: "ForAllNamespaces",
            ..path
        };
        paths.push((
            format!("{root}/{}", resource.plural),
            path.item(&[], &[List]),
        ));
    }
    paths
}

/// A path of a resource.
#[derive(Debug, Clone, Copy)]
struct Path<'a> {
    resource: &'a ResourceType,
    form: Form,
    /// What tells the operations of this path from those of others.
    part: &'static str,
}

impl Path<'_> {
    fn item(self, in_path: &[&str], actions: &[Action]) -> Value {
        let mut item: Map<_, _> = actions
            .iter()
            .map(|action| (action.method().to_owned(), self.operation(*action)))
            .collect();
        let parameters: Vec<_> = in_path
            .iter()
            .map(|name| path_parameter(name, self.form))
            .chain([self.form.reference_parameter(PRETTY.0)])
            .collect();
        item.insert("parameters".to_owned(), json!(parameters));
        Value::Object(item)
    }

    fn operation(self, action: Action) -> Value {
        let resource = self.resource;
        // kubectl 1.20 follows no references when it looks for what a patch takes.
        let mut parameters: Vec<_> = action
            .parameters()
            .iter()
            .flat_map(|group| group.iter())
            .map(|parameter| match action {
                Action::Patch => query_parameter(parameter, self.form),
                _ => self.form.reference_parameter(parameter.0),
            })
            .collect();
        let mut operation = json!({
            "tags": [self.tag()],
            "operationId": self.operation_id(action),
            "responses": self.responses(action),
            "x-kubernetes-action": action.as_str(),
            "x-kubernetes-group-version-kind": {
                "group": resource.group,
                "version": resource.version,
                "kind": resource.kind,
            },
        });
        if let Some(name) = self.body(action) {
            let schema = self.form.reference_schema(&name);
            let is_required = !matches!(action, Delete | DeleteCollection);
            let types = self.body_types(action);
            match self.form {
                Form::V2 => {
                    parameters.push(json!({
                        "name": "body",
                        "in": "body",
                        "required": is_required,
                        "schema": schema,
                    }));
                    operation["consumes"] = json!(types);
                }
                Form::V3 => {
                    let content: Map<_, _> = types
                        .iter()
                        .map(|media| ((*media).to_owned(), json!({"schema": schema})))
                        .collect();
                    operation["requestBody"] = json!({"content": content, "required": is_required});
                }
            }
        }
        if self.form == Form::V2 {
            operation["produces"] = json!(["application/json"]);
        }
        operation["parameters"] = json!(parameters);
        operation
    }

    /// A word for group and version, such as `core_v1`.
    fn tag(self) -> String {
        let group = match self.resource.group {
            "" => "core".to_owned(),
            group => group.trim_end_matches(".k8s.io").replace('.', "_"),
        };
        format!("{group}_{}", self.resource.version)
    }

    fn operation_id(self, action: Action) -> String {
        let words = self.tag();
        let words = words.split('_').map(|word| {
            let (first, rest) = word.split_at(word.len().min(1));
            format!("{}{rest}", first.to_ascii_uppercase())
        });
        let namespaced = if self.resource.is_namespaced && self.part != "ForAllNamespaces" {
            "Namespaced"
        } else {
            ""
        };
        let words: String = words.collect();
        let verb = action.operation_verb();
        format!(
            "{verb}{words}{namespaced}{}{}",
            self.resource.kind, self.part
        )
    }

    /// What the body of a request holds.
    fn body(self, action: Action) -> Option<String> {
        match action {
            Get | List => None,
            Post | Put => Some(name_of_kind(self.resource)),
            Action::Patch => Some(name_of::<Patch>()),
            Delete | DeleteCollection => Some(name_of::<DeleteOptions>()),
        }
    }

    fn body_types(self, action: Action) -> &'static [&'static str] {
        const PATCHES: &[&str] = &[
            "application/json-patch+json",
            "application/merge-patch+json",
            "application/apply-patch+yaml",
            "application/strategic-merge-patch+json",
        ];
        match (action, self.resource.content) {
            (Action::Patch, Content::Calico(_)) => &PATCHES[..3],
            (Action::Patch, _) => PATCHES,
            _ => &["application/json", "application/yaml"],
        }
    }

    fn responses(self, action: Action) -> Value {
        let name = match action {
            List => name_of_list(self.resource),
            Delete | DeleteCollection => name_of::<Status>(),
            _ => name_of_kind(self.resource),
        };
        let schema = self.form.reference_schema(&name);
        let mut responses = Map::new();
        for (code, description) in action.codes() {
            let mut response = json!({"description": description});
            match self.form {
                Form::V2 => response["schema"] = schema.clone(),
                Form::V3 => {
                    response["content"] = json!({"application/json": {"schema": schema}});
                }
            }
            responses.insert((*code).to_owned(), response);
        }
        responses.insert("401".to_owned(), json!({"description": "Unauthorized"}));
        Value::Object(responses)
    }
}

impl Action {
    fn as_str(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::DeleteCollection => "deletecollection",
            _ => self.method(),
        }
    }

    fn method(self) -> &'static str {
        match self {
            Self::Get | Self::List => "get",
            Self::Post => "post",
            Self::Put => "put",
            Self::Patch => "patch",
            Self::Delete | Self::DeleteCollection => "delete",
        }
    }

    fn operation_verb(self) -> &'static str {
        match self {
            Self::Get => "read",
            Self::List => "list",
            Self::Post => "create",
            Self::Put => "replace",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deleteCollection",
        }
    }

    fn parameters(self) -> &'static [&'static [Parameter]] {
        match self {
            Self::Get => &[&[RESOURCE_VERSION]],
            Self::List => &[SELECTION, WATCHING],
            Self::Post | Self::Put => &[WRITING],
            Self::Patch => &[PATCHING],
            Self::Delete => &[DELETING],
            Self::DeleteCollection => &[SELECTION, DELETING],
        }
    }

    fn codes(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Get | Self::List | Self::DeleteCollection => &[("200", "OK")],
            Self::Post => &[("201", "Created")],
            Self::Put | Self::Patch => &[("200", "OK"), ("201", "Created")],
            Self::Delete => &[("200", "OK"), ("202", "Accepted")],
        }
    }
}

impl Form {
    fn reference_schema(self, name: &str) -> Value {
        let prefix = match self {
            Self::V2 => V2_PREFIX,
            Self::V3 => V3_PREFIX,
        };
        json!({"$ref": format!("{prefix}{name}")})
    }

    fn reference_parameter(self, name: &str) -> Value {
        let prefix = match self {
            Self::V2 => "#/parameters/",
            Self::V3 => "#/components/parameters/",
        };
        json!({"$ref": format!("{prefix}{name}")})
    }
}
