//! Reference data: the test vectors of this repository (`testdata/vectors`), and a folder with files of Calico's own that
//! are not in it.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

const VECTORS: &str = "TORTIE_VECTORS";
const CRDS: &str = "TORTIE_CRDS";

/// The cases of one file of test vectors, which is a JSON array. Another folder than that of the repository can be named in
/// `TORTIE_VECTORS`.
///
/// # Panics
/// If the file is missing, is not a JSON array, or is empty.
pub fn vectors(file: &str) -> Vec<Value> {
    read_cases(&vectors_folder().join(file))
}

/// The folders of one folder of test vectors, by name. Another folder than that of the repository can be named in
/// `TORTIE_VECTORS`.
///
/// # Panics
/// If the folder is missing, or has no folders.
pub fn vector_folders(folder: &str) -> Vec<PathBuf> {
    let path = vectors_folder().join(folder);
    let path_text = path.display();
    let entries =
        fs::read_dir(&path).unwrap_or_else(|error| panic!("{path_text} cannot be read: {error}"));
    let entries = entries.map(|entry| {
        let entry = entry.unwrap_or_else(|error| panic!("{path_text} cannot be read: {error}"));
        entry.path()
    });
    let mut folders: Vec<PathBuf> = entries.filter(|entry| entry.is_dir()).collect();
    assert!(!folders.is_empty(), "{path_text} has no folders");
    folders.sort();
    folders
}

/// What a configuration of BIRD says: its lines without comments, empty ones, and differences in white space.
pub fn bird_statements(text: &str) -> Vec<String> {
    let lines = text.lines().map(|line| {
        let code = line.split('#').next().unwrap_or_default();
        code.split_whitespace().collect::<Vec<_>>().join(" ")
    });
    lines.filter(|line| !line.is_empty()).collect()
}

/// Calico reads YAML 1.1, to which a label `n` is called `false`; so do the answers in `bgp`.
pub fn read_labels_as_yaml_1_1(document: &mut Value) {
    let Some(Value::Object(labels)) = document.pointer_mut("/metadata/labels") else {
        return;
    };
    for (names, meant) in [(["n", "no", "off"], "false"), (["y", "yes", "on"], "true")] {
        for name in names {
            if let Some(value) = labels.remove(name) {
                labels.insert(meant.to_owned(), value);
            }
        }
    }
}

/// The folder `TORTIE_CRDS`: Calico's CRDs in `crds-v1` and `crds-v3`, and the description of Felix's parameters. Tests that
/// use it are left out of a run unless they are asked for (`.config/nextest.toml`).
///
/// # Panics
/// If the variable is not set.
pub fn calico_folder() -> PathBuf {
    set(CRDS).unwrap_or_else(|| {
        panic!("{CRDS} is not set: it names the folder with Calico's CRDs (`crds-v1`, `crds-v3`) and `felix-parameters.json`")
    })
}

fn vectors_folder() -> PathBuf {
    set(VECTORS).unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/vectors"))
}

fn set(variable: &str) -> Option<PathBuf> {
    env::var_os(variable)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
}

fn read_cases(path: &Path) -> Vec<Value> {
    let path_text = path.display();
    let text = fs::read(path).unwrap_or_else(|error| panic!("{path_text} cannot be read: {error}"));
    let cases: Vec<Value> = serde_json::from_slice(&text)
        .unwrap_or_else(|error| panic!("{path_text} is not a JSON array of cases: {error}"));
    assert!(!cases.is_empty(), "{path_text} has no cases");
    cases
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
}
