//! Reads resources from files, folders and standard input.

mod many;
mod origin;

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use tortie_api::{Path as FieldPath, Problems, Resource, yaml};

pub use many::read_many;
pub use origin::Origin;
use origin::Source;

/// Largest file that is read; a mistake such as `-f /dev/zero` must not fill the memory.
const MAX_FILE: u64 = 256 << 20;

/// What standard input is called in messages.
pub const STDIN: &str = "stdin";

/// One resource as it stands in a file.
#[derive(Debug)]
pub struct Document {
    /// Where it stands.
    pub origin: Origin,
    /// What it says.
    pub value: Value,
}

/// Reads all documents of files and folders.
pub fn read_all(paths: &[PathBuf], recursive: bool, skip_empty: bool) -> Result<Vec<Document>> {
    let mut documents = Vec::new();
    each_text(paths, recursive, &mut |file, text| {
        documents.extend(parse(file, text)?);
        Ok(())
    })?;
    if documents.is_empty() && !skip_empty {
        bail!("No resources specified");
    }
    Ok(documents)
}

/// Hands over the text of each file, with the name of the file.
fn each_text(
    paths: &[PathBuf],
    recursive: bool,
    take: &mut dyn FnMut(&str, &str) -> Result<()>,
) -> Result<()> {
    for path in paths {
        if path == Path::new("-") {
            let mut text = String::new();
            std::io::stdin()
                .take(MAX_FILE)
                .read_to_string(&mut text)
                .context("cannot read standard input")?;
            take(STDIN, &text)?;
            continue;
        }
        for file in files(path, recursive)? {
            let size = fs::metadata(&file)
                .with_context(|| format!("cannot read {}", file.display()))?
                .len();
            if size > MAX_FILE {
                bail!("{} is larger than {} MiB", file.display(), MAX_FILE >> 20);
            }
            let text = fs::read_to_string(&file)
                .with_context(|| format!("cannot read {}", file.display()))?;
            take(&file.display().to_string(), &text)?;
        }
    }
    Ok(())
}

/// The file itself, or the YAML and JSON files of a folder in order of their names.
fn files(path: &Path, recursive: bool) -> Result<Vec<PathBuf>> {
    let metadata = fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?;
    if !metadata.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let entries = fs::read_dir(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut entries: Vec<PathBuf> = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<std::io::Result<_>>()?;
    entries.sort();
    let mut found = Vec::new();
    for entry in entries {
        if entry.is_dir() {
            if recursive {
                found.extend(files(&entry, true)?);
            }
        } else if has_resource_extension(&entry) {
            found.push(entry);
        }
    }
    Ok(found)
}

fn has_resource_extension(path: &Path) -> bool {
    let extension = path
        .extension()
        .map(|e| e.to_string_lossy().to_ascii_lowercase());
    matches!(extension.as_deref(), Some("yaml" | "yml" | "json"))
}

/// Splits text into documents; lists count as their items.
pub fn parse(file: &str, text: &str) -> Result<Vec<Document>> {
    let values = yaml::parse(text)
        .map_err(|error| anyhow::anyhow!("{file}: not valid YAML or JSON: {error}"))?;
    let source = Source::new(file, text);
    let mut documents: Vec<Document> = Vec::new();
    for (document, value) in values.into_iter().enumerate() {
        flatten(value, &FieldPath::ROOT, &mut |value, path| {
            let origin = Origin {
                source: Arc::clone(&source),
                number: documents.len() + 1,
                document,
                path: path.to_string(),
            };
            documents.push(Document { origin, value });
        });
    }
    Ok(documents)
}

/// The objects of a text; lists count as their items.
fn parse_values(text: &str) -> Result<Vec<Value>, yaml::Error> {
    let mut items = Vec::new();
    for value in yaml::parse(text)? {
        flatten(value, &FieldPath::ROOT, &mut |value, _| items.push(value));
    }
    Ok(items)
}

/// Hands over the objects of a document, each with its path.
fn flatten(value: Value, at: &FieldPath<'_>, take: &mut dyn FnMut(Value, &FieldPath<'_>)) {
    match value {
        Value::Null => {}
        Value::Array(list) => {
            for (index, item) in list.into_iter().enumerate() {
                flatten(item, &at.index(index), take);
            }
        }
        Value::Object(mut object) => {
            let kind = object.get("kind").and_then(Value::as_str);
            let is_list = kind.is_some_and(|kind| kind.ends_with("List"));
            match object.remove("items") {
                Some(list @ Value::Array(_)) if is_list => {
                    flatten(list, &at.field("items"), take);
                }
                Some(other) => {
                    object.insert("items".to_owned(), other);
                    take(Value::Object(object), at);
                }
                None => take(Value::Object(object), at),
            }
        }
        other => take(other, at),
    }
}

impl Document {
    /// `Kind(namespace/name)` as far as the document says so.
    pub fn name(&self) -> String {
        name(&self.value)
    }

    /// Reads the document as a resource, in the given namespace if it names none.
    pub fn decode(&self, namespace: Option<&str>) -> Result<Resource, Problems> {
        decode(&self.value, namespace)
    }
}

/// `Kind(namespace/name)` as far as an object says so.
pub fn name(value: &Value) -> String {
    let text = |pointer| value.pointer(pointer).and_then(Value::as_str);
    let kind = text("/kind").unwrap_or("(no kind)");
    let name = text("/metadata/name").unwrap_or("(no name)");
    match text("/metadata/namespace") {
        Some(namespace) => format!("{kind}({namespace}/{name})"),
        None => format!("{kind}({name})"),
    }
}

/// Reads an object as a resource, in the given namespace if it names none.
pub fn decode(value: &Value, namespace: Option<&str>) -> Result<Resource, Problems> {
    let api_version = value
        .get("apiVersion")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if value
        .get("kind")
        .is_some_and(|kind| kind == "NetworkPolicy")
        && api_version.starts_with("networking.k8s.io/")
    {
        let mut problems = Problems::default();
        let rule = "is managed through the Kubernetes API; use kubectl, or `tortie convert` to make a Calico policy of it";
        problems.add(&FieldPath::ROOT.field("apiVersion"), api_version, rule);
        return Err(problems);
    }
    refuse_nulls(value)?;
    let mut resource = Resource::decode_strict(value)?;
    // Accepted because `kubectl get -o yaml` prints it.
    resource.metadata_mut().managed_fields = None;
    set_namespace(&mut resource, namespace)?;
    Ok(resource)
}

/// A label or annotation that is null is most likely a text without its quotes; leaving it out would be a guess.
fn refuse_nulls(value: &Value) -> Result<(), Problems> {
    let root = FieldPath::ROOT;
    let at = root.field("metadata");
    let mut problems = Problems::default();
    for field in ["labels", "annotations"] {
        let entries = value.pointer(&format!("/metadata/{field}"));
        let entries = entries.and_then(Value::as_object).into_iter().flatten();
        for (name, value) in entries.filter(|(_, value)| value.is_null()) {
            let rule = "must be a string, in quotes: without them, YAML has no value here";
            problems.add(&at.field(field).field(name), value, rule);
        }
    }
    problems.into_result()
}

/// Fills in the namespace of a namespaced resource, and refuses one that contradicts the command line or the kind.
pub fn set_namespace(resource: &mut Resource, namespace: Option<&str>) -> Result<(), Problems> {
    let kind = resource.kind();
    let metadata = resource.metadata_mut();
    let rule = if !kind.is_namespaced() {
        (!metadata.namespace.is_empty())
            .then(|| format!("must not be given: {kind} is cluster-wide"))
    } else if metadata.namespace.is_empty() {
        namespace
            .unwrap_or("default")
            .clone_into(&mut metadata.namespace);
        None
    } else {
        let other = namespace.filter(|namespace| *namespace != metadata.namespace);
        other.map(|other| format!("is not `{other}`, which the command line asks for"))
    };
    let Some(rule) = rule else { return Ok(()) };
    let mut problems = Problems::default();
    let root = FieldPath::ROOT;
    let at = root.field("metadata");
    problems.add(&at.field("namespace"), &metadata.namespace, rule);
    Err(problems)
}
