//! `apply`, then `get -o yaml`, then `apply` again changes nothing, for every kind.

use serde_json::Value;
use tortie_api::Kind;

use crate::cli::program::{Tortie, fixture};

/// Applies a file, reads everything back in the given form, applies that, and compares the datastore before and after.
#[track_caller]
pub(crate) fn check(tortie: &Tortie, file: &str, form: &str) {
    let file = fixture(file).display().to_string();
    tortie.ok(&["apply", "-f", &file]);
    let text = std::fs::read_to_string(&file).unwrap();
    let documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    let mut kinds: Vec<&str> = documents
        .iter()
        .map(|d| d["kind"].as_str().unwrap())
        .collect();
    kinds.sort_unstable();
    kinds.dedup();
    for kind in kinds {
        let scope: &[&str] = if Kind::from_name(kind).unwrap().is_namespaced() {
            &["-A"]
        } else {
            &[]
        };
        let get = |form: &str| tortie.ok(&[&["get", kind, "-o", form], scope].concat());
        let before = get(form);
        assert!(
            before.contains("metadata"),
            "{kind}: nothing was stored:\n{before}"
        );
        let output = tortie.ok_with_input(&["apply", "-f", "-"], &before);
        assert!(
            !output.contains(" created") && !output.contains(" changed"),
            "{kind}: {output}"
        );
        assert_eq!(
            without_list_revision(&before),
            without_list_revision(&get(form)),
            "{kind} changed"
        );
    }
    // Applying the original once more changes nothing either.
    let output = tortie.ok(&["apply", "-f", &file]);
    assert!(
        !output.contains(" created") && !output.contains(" changed"),
        "{output}"
    );
}

/// The list's own revision moves with every write to the datastore, whatever it is.
fn without_list_revision(text: &str) -> Value {
    let mut value: Value = serde_saphyr::from_str(text).unwrap();
    value["metadata"]["resourceVersion"] = Value::Null;
    value
}
