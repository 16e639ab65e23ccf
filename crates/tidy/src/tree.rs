//! The packages and source files of the workspace.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

/// What rules look at.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub(crate) packages: Vec<Package>,
    pub(crate) files: Vec<File>,
    /// ARCHITECTURE.md.
    pub(crate) architecture: String,
}

/// A package of the workspace.
#[derive(Debug, Clone, Default)]
pub(crate) struct Package {
    /// Without the prefix that all packages share.
    pub(crate) name: String,
    /// None for tools, which are part of no program.
    pub(crate) layer: Option<u8>,
    /// What it is built with, tests apart; packages of the workspace without the prefix that they share.
    pub(crate) dependencies: Vec<String>,
}

/// A source file.
#[derive(Debug, Clone, Default)]
pub(crate) struct File {
    /// From the root of the workspace.
    pub(crate) path: String,
    /// The package that it is part of.
    pub(crate) package: String,
    /// Whether it is built for tests and benchmarks only.
    pub(crate) is_test: bool,
    pub(crate) text: String,
}

/// Where a rule is broken, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Violation {
    pub(crate) path: String,
    /// From 1; 0 for the whole file.
    pub(crate) line: usize,
    pub(crate) problem: String,
}

const PREFIX: &str = "tortie-";

impl Tree {
    pub(crate) fn read(root: Option<&Path>) -> Result<Self> {
        let root = root.context("this crate is in no workspace")?;
        let mut tree = Self {
            architecture: read(&root.join("ARCHITECTURE.md"))?,
            ..Self::default()
        };
        for package in metadata(root)?.packages {
            let folder = Path::new(&package.manifest_path).parent();
            let folder = folder.context("a manifest without a folder")?.to_owned();
            let package = package.reduced();
            for (sub, is_test) in [
                ("src", false),
                ("tests", true),
                ("benches", true),
                ("examples", true),
            ] {
                for path in rust_files(&folder.join(sub))? {
                    let text = read(&path)?;
                    let path = path.strip_prefix(root)?.to_string_lossy().into_owned();
                    tree.files.push(File {
                        is_test: is_test || is_of_tests(&path),
                        package: package.name.clone(),
                        path,
                        text,
                    });
                }
            }
            tree.packages.push(package);
        }
        Ok(tree)
    }

    pub(crate) fn package(&self, name: &str) -> Option<&Package> {
        self.packages.iter().find(|package| package.name == name)
    }

    /// The layer of the package that a file is part of.
    pub(crate) fn layer_of(&self, file: &File) -> Option<u8> {
        self.package(&file.package)
            .and_then(|package| package.layer)
    }

    /// What programs are built of.
    pub(crate) fn sources(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| !file.is_test)
    }
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.problem),
            line => write!(f, "{}:{line}: {}", self.path, self.problem),
        }
    }
}

/// Modules of tests within a library: `tests.rs`, and all below `tests/`.
fn is_of_tests(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.contains("/tests/")
}

fn rust_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    if !folder.is_dir() {
        return Ok(files);
    }
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()));
    for entry in entries? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(rust_files(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn read(file: &Path) -> Result<String> {
    fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))
}

// === What cargo says ===

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<CargoPackage>,
}

#[derive(Deserialize)]
struct CargoPackage {
    name: String,
    manifest_path: String,
    dependencies: Vec<Dependency>,
    metadata: Option<Keys>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    /// None, `build` or `dev`.
    kind: Option<String>,
}

#[derive(Deserialize, Default)]
struct Keys {
    #[serde(default)]
    tortie: Tortie,
}

#[derive(Deserialize, Default)]
struct Tortie {
    layer: Option<u8>,
}

impl CargoPackage {
    fn reduced(self) -> Package {
        let dependencies = self.dependencies.into_iter();
        let built_with =
            dependencies.filter(|dependency| dependency.kind.as_deref() != Some("dev"));
        Package {
            name: short(&self.name),
            layer: self.metadata.unwrap_or_default().tortie.layer,
            dependencies: built_with
                .map(|dependency| short(&dependency.name))
                .collect(),
        }
    }
}

fn short(name: &str) -> String {
    name.strip_prefix(PREFIX).unwrap_or(name).to_owned()
}

fn metadata(root: &Path) -> Result<Metadata> {
    let mut command = Command::new(env!("CARGO"));
    command.args(["metadata", "--no-deps", "--offline", "--format-version=1"]);
    let output = command
        .current_dir(root)
        .output()
        .context("cannot run cargo")?;
    let words = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "cargo metadata failed: {words}");
    serde_json::from_slice(&output.stdout).context("cannot read what cargo metadata printed")
}
