//! Which crates are in the program, as SPDX 2.3 has it.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::digest::sha256;
use crate::oci::timestamp;
use crate::tree::output;

/// The crate that becomes the program.
const ROOT: &str = "tortie-cli";

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    source: Option<String>,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    pkg: String,
    dep_kinds: Vec<DependencyKind>,
}

#[derive(Deserialize)]
struct DependencyKind {
    /// None for what becomes part of the program.
    kind: Option<String>,
}

/// The document, as text.
pub(crate) fn document(time: u64) -> Result<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let args = [
        "metadata",
        "--locked",
        "--format-version",
        "1",
        "--filter-platform",
        "x86_64-unknown-linux-gnu",
    ];
    let text = output(Command::new("cargo").args(args).current_dir(folder))?;
    let metadata: Metadata = serde_json::from_str(&text)?;
    let document = of(&metadata, time)?;
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

fn of(metadata: &Metadata, time: u64) -> Result<Value> {
    let root = metadata
        .packages
        .iter()
        .find(|package| package.name == ROOT);
    let root = root.context("the program's own crate is not among the packages")?;
    let inside = reachable(&metadata.resolve, &root.id);
    let mut packages: Vec<&Package> = metadata.packages.iter().collect();
    packages.retain(|package| inside.contains(package.id.as_str()));
    packages.sort_by_key(|package| (&package.name, &package.version));
    let listed: Vec<Value> = packages.iter().map(|package| entry(package)).collect();
    let relations = packages.iter().map(|package| {
        json!({"spdxElementId": id(root), "relatedSpdxElement": id(package), "relationshipType": "DEPENDS_ON"})
    });
    let relations: Vec<Value> = relations.collect();
    let digest = sha256(serde_json::to_string(&listed)?.as_bytes());
    Ok(json!({
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": format!("tortie-{}", root.version),
        "documentNamespace": format!("https://spdx.org/spdxdocs/tortie-{}-{digest}", root.version),
        "creationInfo": {"created": timestamp(time)?, "creators": ["Tool: tortie-release"]},
        "documentDescribes": [id(root)],
        "packages": listed,
        "relationships": relations,
    }))
}

/// What becomes part of the program: not what only builds or tests it.
fn reachable<'a>(resolve: &'a Resolve, root: &'a str) -> BTreeSet<&'a str> {
    let nodes: HashMap<&str, &Node> = resolve
        .nodes
        .iter()
        .map(|node| (node.id.as_str(), node))
        .collect();
    let mut found = BTreeSet::from([root]);
    let mut waiting = vec![root];
    while let Some(node) = waiting.pop().and_then(|id| nodes.get(id)) {
        for dependency in &node.deps {
            let is_inside = dependency.dep_kinds.iter().any(|of| of.kind.is_none());
            if is_inside && found.insert(&dependency.pkg) {
                waiting.push(&dependency.pkg);
            }
        }
    }
    found
}

fn entry(package: &Package) -> Value {
    let (name, version) = (&package.name, &package.version);
    let licence = package
        .license
        .as_deref()
        .unwrap_or("NOASSERTION")
        .replace('/', " OR ");
    let place = match package.source {
        Some(_) => format!("https://crates.io/api/v1/crates/{name}/{version}/download"),
        None => "NOASSERTION".to_owned(),
    };
    json!({
        "SPDXID": id(package),
        "name": name,
        "versionInfo": version,
        "downloadLocation": place,
        "filesAnalyzed": false,
        "licenseConcluded": licence,
        "licenseDeclared": licence,
        "copyrightText": "NOASSERTION",
        "externalRefs": [{
            "referenceCategory": "PACKAGE-MANAGER",
            "referenceType": "purl",
            "referenceLocator": format!("pkg:cargo/{name}@{version}"),
        }],
    })
}

fn id(package: &Package) -> String {
    let name = format!("{}-{}", package.name, package.version);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '-';
    format!("SPDXRef-{}", name.replace(|c| !is_plain(c), "-"))
}
