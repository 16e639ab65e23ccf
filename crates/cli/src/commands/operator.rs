//! `tortie operator`

mod files;
mod names;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};

use self::names::Names;
use crate::args::{Operator, OperatorCommand, OperatorNew};

/// Where the framework is in its checkout.
const FRAMEWORK: &str = "crates/operator/Cargo.toml";

pub(super) fn run(args: Operator) -> Result<ExitCode> {
    match args.command {
        OperatorCommand::New(args) => new(args),
    }
}

fn new(args: OperatorNew) -> Result<ExitCode> {
    let names = Names::new(&args.name, &args.kind, &args.group)?;
    let folder = args.dir.unwrap_or_else(|| PathBuf::from(&args.name));
    check_empty(&folder)?;
    let folder = std::path::absolute(&folder)?;
    let framework = match args.framework {
        Some(given) => {
            if !given.join(FRAMEWORK).is_file() {
                bail!(
                    "{} is no checkout of Tortie: it has no {FRAMEWORK}",
                    given.display()
                );
            }
            fs::canonicalize(&given)?
        }
        None => enclosing_checkout(&folder).with_context(|| {
            format!(
                "{} is in no checkout of Tortie: name one with --framework",
                folder.display()
            )
        })?,
    };
    for (path, content) in files::FILES {
        let content = names.apply(content);
        let content = if *path == "Cargo.toml" {
            manifest(&content, &folder, &framework)
        } else {
            content
        };
        write(&folder.join(path), &content)?;
    }
    // The versions that the framework is tested with.
    let lock = framework.join("Cargo.lock");
    if lock.is_file() && !folder.starts_with(&framework) {
        let to = folder.join("Cargo.lock");
        fs::copy(&lock, &to).with_context(|| format!("cannot write {}", to.display()))?;
    }
    let mut stdout = anstream::stdout().lock();
    let (name, kind) = (&args.name, &args.kind);
    writeln!(
        stdout,
        "Wrote the operator `{name}` for the kind {kind} to {}.\n",
        folder.display()
    )?;
    writeln!(stdout, "Next:")?;
    writeln!(stdout, "  cd {}", folder.display())?;
    writeln!(
        stdout,
        "  cargo test                      # on a real API server: see README.md"
    )?;
    writeln!(
        stdout,
        "  edit src/resource.rs            # the kind; then: cargo run -- crd >config/crd/definition.json"
    )?;
    writeln!(
        stdout,
        "  edit src/reconcile.rs           # what is done for one object"
    )?;
    writeln!(stdout, "  kubectl apply -k config/crd && cargo run")?;
    Ok(ExitCode::SUCCESS)
}

/// The manifest with the paths of the framework. One inside a checkout says that it is no part of it, unless it is the
/// example itself.
fn manifest(content: &str, folder: &Path, framework: &Path) -> String {
    let is_inside = folder.starts_with(framework);
    let from = |part: &str| {
        let path = match folder.strip_prefix(framework) {
            Ok(inside) => inside
                .components()
                .map(|_| Path::new(".."))
                .collect::<PathBuf>()
                .join(part),
            Err(_) => framework.join(part),
        };
        path.display().to_string()
    };
    let mut manifest = content.to_owned();
    for part in ["crates/operator", "crates/testkit"] {
        let quoted = toml_text(&from(part));
        manifest = manifest.replace(&format!("\"../../{part}\""), &quoted);
    }
    if is_inside && !folder.ends_with("examples/operator") {
        manifest.push_str("\n[workspace]\n");
    }
    manifest
}

fn toml_text(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

fn check_empty(folder: &Path) -> Result<()> {
    match fs::read_dir(folder) {
        Ok(mut entries) => {
            if entries.next().is_some() {
                bail!("{} is not empty", folder.display());
            }
            Ok(())
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error).with_context(|| format!("cannot use {}", folder.display())),
    }
}

fn enclosing_checkout(folder: &Path) -> Option<PathBuf> {
    let found = folder
        .ancestors()
        .find(|folder| folder.join(FRAMEWORK).is_file());
    found.map(Path::to_owned)
}

fn write(path: &Path, content: &str) -> Result<()> {
    let written = path
        .parent()
        .map_or(Ok(()), fs::create_dir_all)
        .and_then(|()| fs::write(path, content));
    written.with_context(|| format!("cannot write {}", path.display()))
}
