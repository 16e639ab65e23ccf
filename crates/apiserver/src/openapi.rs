//! What objects look like and what can be done with them, for programs: `OpenAPI` documents of version 2 and 3.
//!
//! `kubectl explain`, checks before an object is sent, and the question whether a server knows dry runs all come from
//! here. The schemas of Calico's kinds are those of their CRDs, the others those of Kubernetes' own documents.
//!
//! # Invariants
//! - Every reference names something in the same document.
//! - Version 2 holds nothing that it does not define: kubectl refuses the whole document otherwise.

mod definitions;
mod messages;
mod paths;
mod protobuf;
mod schema;

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::discovery::git_version;
use crate::registry::{Registry, ResourceType};
use paths::Form;

/// The media type of version 2 as protobuf.
pub const V2_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// What clients before 1.24 accept instead. It is no media type, so it must not be answered with.
pub const V2_PROTOBUF_OLD: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";

/// A document as it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Its content.
    pub bytes: Vec<u8>,
    /// What changes when the content does, in hexadecimal digits.
    pub hash: String,
}

/// `/openapi/v2`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct V2 {
    pub json: Document,
    /// In the form that kubectl reads.
    pub protobuf: Document,
}

/// `/openapi/v3` and the documents below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct V3 {
    /// Where the documents of the groups are.
    pub index: Document,
    groups: Vec<(&'static str, &'static str, Document)>,
}

/// All resources in version 2.
pub fn v2(registry: &Registry) -> V2 {
    let document = v2_document(registry);
    V2 {
        protobuf: Document::new(protobuf::encode(&document)),
        json: Document::new(document.to_string().into_bytes()),
    }
}

/// All resources in version 3, with one document for each group.
pub fn v3(registry: &Registry) -> V3 {
    let groups: Vec<_> = registry
        .groups()
        .into_iter()
        .map(|(group, version)| {
            let document = v3_document(registry, group, version);
            let document = Document::new(document.to_string().into_bytes());
            (group, version, document)
        })
        .collect();
    let paths: Map<_, _> = groups
        .iter()
        .map(|(group, version, document)| {
            let path = match *group {
                "" => format!("api/{version}"),
                group => format!("apis/{group}/{version}"),
            };
            let url = format!("/openapi/v3/{path}?hash={}", document.hash);
            (path, json!({"serverRelativeURL": url}))
        })
        .collect();
    let index = json!({"paths": paths});
    V3 {
        index: Document::new(index.to_string().into_bytes()),
        groups,
    }
}

impl V3 {
    pub fn group(&self, group: &str, version: &str) -> Option<&Document> {
        let mut groups = self.groups.iter();
        groups
            .find(|(known, its, _)| (*known, *its) == (group, version))
            .map(|(_, _, document)| document)
    }
}

impl Document {
    fn new(bytes: Vec<u8>) -> Self {
        let hash = format!("{:X}", Sha256::digest(&bytes));
        Self { bytes, hash }
    }
}

fn v2_document(registry: &Registry) -> Value {
    let types: Vec<_> = registry.types().iter().collect();
    let mut definitions = definitions::of(&types);
    definitions.values_mut().for_each(schema::to_v2);
    json!({
        "swagger": "2.0",
        "info": info(),
        "paths": all_paths(&types, Form::V2),
        "definitions": definitions,
        "parameters": paths::shared_parameters(Form::V2),
    })
}

fn v3_document(registry: &Registry, group: &str, version: &str) -> Value {
    let types: Vec<_> = registry.in_group(group, version).collect();
    let mut schemas = definitions::of(&types);
    schemas.values_mut().for_each(schema::to_v3);
    json!({
        "openapi": "3.0.0",
        "info": info(),
        "paths": all_paths(&types, Form::V3),
        "components": {
            "schemas": schemas,
            "parameters": paths::shared_parameters(Form::V3),
        },
    })
}

fn info() -> Value {
    json!({"title": "Kubernetes", "version": git_version()})
}

fn all_paths(types: &[&ResourceType], form: Form) -> Map<String, Value> {
    let types = types.iter();
    types
        .flat_map(|resource| paths::of(resource, form))
        .collect()
}

#[cfg(test)]
mod tests;
