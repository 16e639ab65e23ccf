//! `tortie operator new`: the project that it writes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod manifests;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn tortie(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tortie"))
        .args(args)
        .output()
        .unwrap()
}

pub(crate) fn checkout() -> PathBuf {
    fs::canonicalize(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).unwrap()
}

/// Writes a project under names of its own, on the framework of this checkout.
pub(crate) fn write_shop_guard(project: &Path) -> Output {
    let framework = checkout();
    let written = tortie(&[
        "operator",
        "new",
        "shop-guard",
        "--kind",
        "ShopPolicy",
        "--group",
        "ops.example.com",
        "--framework",
        framework.to_str().unwrap(),
        "--dir",
        project.to_str().unwrap(),
    ]);
    assert!(written.status.success(), "{written:?}");
    written
}

/// All files below a folder, by path.
fn files(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().to_owned();
                found.insert(name, fs::read_to_string(path).unwrap());
            }
        }
    }
    found
}

#[test]
fn with_the_names_of_the_example_it_writes_the_example() {
    let folder = tempfile::tempdir().unwrap();
    // A checkout that is nothing but a place for the example.
    let framework = folder.path().join("crates/operator");
    fs::create_dir_all(&framework).unwrap();
    fs::write(framework.join("Cargo.toml"), "").unwrap();
    let project = folder.path().join("examples/operator");
    let written = tortie(&[
        "operator",
        "new",
        "namespace-baseline",
        "--kind",
        "NamespaceBaseline",
        "--dir",
        project.to_str().unwrap(),
    ]);
    assert!(written.status.success(), "{written:?}");
    let (written, example) = (
        files(&project),
        files(&checkout().join("examples/operator")),
    );
    let names = |files: &BTreeMap<PathBuf, String>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&written), names(&example));
    for (path, content) in &example {
        assert_eq!(&written[path], content, "{}", path.display());
    }
}

#[test]
fn names_of_the_example_do_not_stay_behind() {
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path().join("guard");
    let written = write_shop_guard(&project);
    let told = String::from_utf8(written.stdout).unwrap();
    assert!(
        told.contains("cargo test") && told.contains(project.to_str().unwrap()),
        "{told}"
    );
    let files = files(&project);
    for (path, content) in files
        .iter()
        .filter(|(path, _)| path.as_path() != Path::new("Cargo.lock"))
    {
        for old in ["aseline", "example.tortie.dev", "../../crates"] {
            assert!(!content.contains(old), "{} still has {old}", path.display());
        }
    }
    let definition = &files[Path::new("config/crd/definition.json")];
    assert!(
        definition.contains("\"shoppolicies.ops.example.com\""),
        "{definition}"
    );
}

#[test]
fn what_cannot_be_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new");
    let path = path.to_str().unwrap();
    let full = folder.path().join("full");
    fs::create_dir(&full).unwrap();
    fs::write(full.join("file"), "").unwrap();
    let full = full.to_str().unwrap();
    for (args, expected) in [
        (
            ["Shop", "Shop", "a.b", path],
            "name `Shop`: `S` is not allowed",
        ),
        (
            ["shop-", "Shop", "a.b", path],
            "begin and end with a letter",
        ),
        (["9shop", "Shop", "a.b", path], "cannot start with a digit"),
        (
            ["test", "Shop", "a.b", path],
            "a package cannot have this name",
        ),
        (
            ["shop", "shop", "a.b", path],
            "kind `shop`: a kind is in camel case",
        ),
        (["shop", "Shop-Guard", "a.b", path], "kind `Shop-Guard`"),
        (
            ["shop", "Shop", "local", path],
            "group `local`: a group has a domain's name",
        ),
        (["shop", "Shop", "a.B", path], "`B` is not allowed"),
        (["shop", "Shop", "a.b", full], "full is not empty"),
        (
            ["shop", "Shop", "a.b", path],
            "in no checkout of Tortie: name one with --framework",
        ),
    ] {
        let [name, kind, group, dir] = args;
        let refused = tortie(&[
            "operator", "new", name, "--kind", kind, "--group", group, "--dir", dir,
        ]);
        assert_eq!(refused.status.code(), Some(1), "{args:?}");
        let text = String::from_utf8(refused.stderr).unwrap();
        assert!(text.contains(expected), "{args:?}: {text}");
    }
    let given = [
        "operator",
        "new",
        "shop",
        "--kind",
        "Shop",
        "--dir",
        path,
        "--framework",
        full,
    ];
    let text = String::from_utf8(tortie(&given).stderr).unwrap();
    assert!(text.contains("is no checkout of Tortie"), "{text}");
    assert!(!Path::new(path).exists(), "nothing was written");
}

/// A stranger's project: other names, another folder, the versions of the framework.
#[test]
#[ignore = "builds a whole project, which takes many minutes: cargo test -p tortie-cli --test system -- --ignored operator::"]
fn a_new_project_builds_and_passes_its_test() {
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path().join("shop-guard");
    write_shop_guard(&project);
    // With the workspace's profile, what it has built already is used again.
    let target = Path::new(env!("CARGO_BIN_EXE_tortie"))
        .ancestors()
        .nth(2)
        .unwrap();
    let tested = Command::new(env!("CARGO"))
        .args(["test", "--target-dir", target.to_str().unwrap()])
        .args(["--config", "profile.dev.debug=\"line-tables-only\""])
        .args(["--config", "profile.dev.package.\"*\".debug=false"])
        .current_dir(&project)
        .env_remove("KUBECONFIG")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&tested.stdout);
    let errors = String::from_utf8_lossy(&tested.stderr);
    assert!(tested.status.success(), "{text}\n{errors}");
    assert!(text.contains("2 passed"), "{text}");
}
