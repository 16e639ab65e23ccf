//! What people mean by a kind, a name and a namespace.

use anyhow::{Result, bail};
use tortie_api::Kind;
use tortie_store::Key;

/// The kind that a word stands for.
pub(super) fn parse(word: &str) -> Result<Kind> {
    let Some(kind) = Kind::from_word(word) else {
        let names: Vec<&str> = Kind::ALL.iter().map(|kind| kind.plural()).collect();
        let near = Kind::nearest(word).map(|kind| format!("did you mean `{}`? ", kind.plural()));
        bail!(
            "resource type '{word}' is not supported; {}known are {}",
            near.unwrap_or_default(),
            names.join(", ")
        )
    };
    Ok(kind)
}

/// Splits `kind/name` and joins it with further names.
pub(super) fn parse_with_names(word: &str, names: &[String]) -> Result<(Kind, Vec<String>)> {
    let (kind, first) = match word.split_once('/') {
        Some((kind, name)) => (parse(kind)?, Some(name.to_owned())),
        None => (parse(word)?, None),
    };
    let names: Vec<String> = first.into_iter().chain(names.iter().cloned()).collect();
    if names.iter().any(String::is_empty) {
        bail!("resource name may not be empty");
    }
    Ok((kind, names))
}

/// The key of a named object; cluster-wide kinds refuse a namespace.
pub(super) fn key(kind: Kind, name: &str, namespace: Option<&str>) -> Result<Key> {
    if kind.is_namespaced() {
        return Ok(Key::namespaced(kind, namespace.unwrap_or("default"), name));
    }
    if let Some(namespace) = namespace {
        bail!("namespace '{namespace}' was given, but {kind} is cluster-wide");
    }
    Ok(Key::global(kind, name))
}
