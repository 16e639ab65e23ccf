//! Reference data that is not in the repository: test vectors and Calico's CRDs, found through
//! environment variables.
//!
//! Where a variable is not set, the tests that use it say so and check nothing. Where it is set,
//! all has to be there.

use std::{
    env, fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use serde_json::Value;

const VECTORS: &str = "TORTIE_VECTORS";
const CRDS: &str = "TORTIE_CRDS";

/// The cases of `$TORTIE_VECTORS/<file>`, which is a JSON array; none if the variable is not set.
///
/// # Panics
/// If the variable is set and the file is missing, is not a JSON array, or is empty.
pub fn vectors(file: &str) -> Option<Vec<Value>> {
    let Some(folder) = set(VECTORS) else {
        report(&format!(
            "{VECTORS} is not set: the vector tests in {file} were not run"
        ));
        return None;
    };
    Some(read_cases(&folder.join(file)))
}

/// The folder with the CRDs of an API group, `projectcalico.org` or `crd.projectcalico.org`:
/// `$TORTIE_CRDS/crds-v3` or `$TORTIE_CRDS/crds-v1`; none if the variable is not set.
///
/// # Panics
/// If the group is another, or the variable is set and the folder is missing or holds no `.yaml`
/// file.
pub fn crds_dir(group: &str) -> Option<PathBuf> {
    let name = match group {
        "projectcalico.org" => "crds-v3",
        "crd.projectcalico.org" => "crds-v1",
        _ => panic!(
            "`{group}` is not a group of Calico's CRDs: `projectcalico.org` or `crd.projectcalico.org`"
        ),
    };
    let Some(folder) = set(CRDS) else {
        report(&format!(
            "{CRDS} is not set: the tests with the CRDs of {group} were not run"
        ));
        return None;
    };
    let folder = folder.join(name);
    require_yaml(&folder);
    Some(folder)
}

fn set(variable: &str) -> Option<PathBuf> {
    env::var_os(variable)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
}

/// Straight to standard error: what goes through `eprintln!` is kept back where the test passes.
fn report(message: &str) {
    // Nothing is left to tell it to where standard error is closed.
    let _ = writeln!(io::stderr(), "{message}");
}

fn read_cases(path: &Path) -> Vec<Value> {
    let path_text = path.display();
    let text = fs::read(path).unwrap_or_else(|error| {
        panic!("{VECTORS} is set, but {path_text} cannot be read: {error}")
    });
    let cases: Vec<Value> = serde_json::from_slice(&text)
        .unwrap_or_else(|error| panic!("{path_text} is not a JSON array of cases: {error}"));
    assert!(!cases.is_empty(), "{path_text} has no cases");
    cases
}

fn require_yaml(folder: &Path) {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| {
        panic!(
            "{CRDS} is set, but {} cannot be read: {error}",
            folder.display()
        )
    });
    let found = entries
        .flatten()
        .any(|entry| entry.path().extension().is_some_and(|ext| ext == "yaml"));
    assert!(
        found,
        "{CRDS} is set, but {} has no .yaml file",
        folder.display()
    );
}

#[cfg(test)]
mod tests {
    use std::panic;

    use super::*;

    #[track_caller]
    fn check(content: Option<&str>, expected: Result<usize, &str>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cases.json");
        if let Some(content) = content {
            fs::write(&path, content).unwrap();
        }
        let result = panic::catch_unwind(|| read_cases(&path).len());
        match (result, expected) {
            (Ok(count), Ok(expected)) => assert_eq!(count, expected),
            (Err(panic), Err(expected)) => {
                let message = panic
                    .downcast::<String>()
                    .expect("it panics with a formatted message");
                assert!(
                    message.contains(expected) && message.contains("cases.json"),
                    "{message}"
                );
            }
            (result, expected) => panic!("{result:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn cases_are_read_and_anything_less_panics() {
        check(Some(r#"[{"a": 1}, 2]"#), Ok(2));
        check(Some("[]"), Err("has no cases"));
        check(Some("{}"), Err("is not a JSON array"));
        check(Some("["), Err("is not a JSON array"));
        check(None, Err("cannot be read"));
    }

    #[test]
    #[should_panic(expected = "has no .yaml file")]
    fn a_crd_folder_without_crds_panics() {
        require_yaml(tempfile::tempdir().unwrap().path());
    }

    #[test]
    #[should_panic(expected = "is not a group of Calico's CRDs")]
    fn an_unknown_crd_group_panics() {
        crds_dir("projectcalico.org/v3");
    }
}
