//! How much an object may hold, whatever its type.

use std::io;

use serde_json::Value;
use tortie_api::validate::is_qualified_name;
use tortie_api::{Path, Problems};

use crate::failure::{Failure, Reason, Result};
use crate::registry::ResourceType;

/// The largest object, in bytes of JSON: as much as a request may hold. etcd takes half of it and says so itself; large
/// sets of networks need more.
const MAX_OBJECT: usize = 3 << 20;

/// All names and values of labels together, in bytes. Kubernetes has no bound but that of the object; every watcher and
/// every selector pays for labels.
const MAX_LABELS: usize = 64 << 10;

/// How many may hold an object back.
const MAX_FINALIZERS: usize = 256;

/// How many objects may own one.
const MAX_OWNERS: usize = 256;

/// Fails if an object holds too much, or is held back by names that are none.
pub(super) fn check(of: &ResourceType, object: &Value) -> Result<()> {
    let metadata = &object["metadata"];
    let name = metadata["name"].as_str().unwrap_or_default();
    let size = size_of(object);
    if size > MAX_OBJECT {
        let what = format!("is too large: it has {size} bytes, the limit is {MAX_OBJECT}");
        let failure = Failure::about(Reason::TooLarge, of.group, of.plural, name, what);
        return Err(failure);
    }
    let mut problems = Problems::default();
    let root = Path::ROOT;
    let at = root.field("metadata");
    check_labels(&at.field("labels"), &metadata["labels"], &mut problems);
    check_finalizers(
        &at.field("finalizers"),
        &metadata["finalizers"],
        &mut problems,
    );
    let owners = &metadata["ownerReferences"];
    check_length(
        &at.field("ownerReferences"),
        owners,
        MAX_OWNERS,
        &mut problems,
    );
    match problems.into_result() {
        Ok(()) => Ok(()),
        Err(problems) => Err(Failure::invalid(of.group, of.kind, name, &problems)),
    }
}

fn check_labels(at: &Path<'_>, labels: &Value, problems: &mut Problems) {
    let labels = labels.as_object().into_iter().flatten();
    let bytes = labels.map(|(name, value)| name.len() + value.as_str().map_or(0, str::len));
    let bytes: usize = bytes.sum();
    if bytes > MAX_LABELS {
        let rule = format!("must be at most {MAX_LABELS} bytes together, are {bytes}");
        problems.add_missing(at, rule);
    }
}

fn check_finalizers(at: &Path<'_>, finalizers: &Value, problems: &mut Problems) {
    check_length(at, finalizers, MAX_FINALIZERS, problems);
    let finalizers = finalizers.as_array().into_iter().flatten();
    for (index, finalizer) in finalizers.enumerate() {
        if !finalizer.as_str().is_some_and(is_qualified_name) {
            let rule = "must be a name such as `example.com/lock`: at most 63 letters, digits, `-`, `_` and `.`, \
                        optionally after a DNS name and `/`";
            problems.add(&at.index(index), finalizer, rule);
        }
    }
}

fn check_length(at: &Path<'_>, list: &Value, max: usize, problems: &mut Problems) {
    let length = list.as_array().map_or(0, Vec::len);
    if length > max {
        let rule = format!("must be at most {max}, are {length}");
        problems.add_missing(at, rule);
    }
}

/// How many bytes of JSON an object is.
fn size_of(object: &Value) -> usize {
    struct Counter(usize);
    impl io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    // A counter takes everything.
    let _ = serde_json::to_writer(&mut counter, object);
    counter.0
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::registry::Registry;

    #[track_caller]
    fn refused(metadata: &Value) -> String {
        let registry = Registry::standalone();
        let of = registry.find("projectcalico.org", "v3", "tiers").unwrap();
        check(of, &json!({"metadata": metadata}))
            .map_or_else(|failure| failure.message, |()| String::new())
    }

    #[test]
    fn labels_have_a_bound_together() {
        let labels = |count: usize| -> Value {
            let labels =
                (0..count).map(|number| (format!("{number:016}"), json!("0123456789abcdef")));
            Value::Object(labels.collect())
        };
        assert_eq!(refused(&json!({"name": "a", "labels": labels(2_048)})), "");
        assert_eq!(
            refused(&json!({"name": "a", "labels": labels(2_049)})),
            "Tier.projectcalico.org \"a\" is invalid: metadata.labels: must be at most 65536 bytes together, are 65568"
        );
    }

    #[test]
    fn finalizers_are_names_and_few() {
        let finalizers: Vec<String> = (0..257)
            .map(|number| format!("example.com/{number}"))
            .collect();
        assert_eq!(refused(&json!({"finalizers": finalizers[..256]})), "");
        let message = refused(&json!({"finalizers": finalizers}));
        assert!(
            message.contains("metadata.finalizers: must be at most 256, are 257"),
            "{message}"
        );
        let message = refused(&json!({"finalizers": ["orphan", "not a name", 3]}));
        assert!(
            message.contains("metadata.finalizers[1] = \"not a name\": must be a name"),
            "{message}"
        );
        assert!(message.contains("metadata.finalizers[2] = 3"), "{message}");
    }

    #[test]
    fn owners_are_few() {
        let owners = vec![json!({"uid": "u"}); 257];
        let message = refused(&json!({"ownerReferences": owners}));
        assert!(
            message.contains("metadata.ownerReferences: must be at most 256, are 257"),
            "{message}"
        );
    }

    #[test]
    fn a_refusal_of_the_whole_names_size_and_limit() {
        let message = refused(&json!({"name": "a", "annotations": {"a": "x".repeat(3 << 20)}}));
        assert_eq!(
            message,
            "tiers.projectcalico.org \"a\" is too large: it has 3145776 bytes, the limit is 3145728"
        );
    }
}
