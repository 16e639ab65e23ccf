//! Programs of this machine, with the libraries that they need to run elsewhere.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::tree::{File, Tree};

/// Where programs for administrators are.
const FOLDERS: [&str; 4] = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"];

/// Extensions of iptables, which it loads by their names.
const EXTENSIONS: &str = "/usr/lib/x86_64-linux-gnu/xtables";

/// Adds a program under its own path.
pub(crate) fn add(tree: &mut Tree, name: &str) -> Result<()> {
    let places = FOLDERS.map(|folder| Path::new(folder).join(name));
    let found = places.into_iter().find(|path| path.is_file());
    let found = found.with_context(|| {
        format!("there is no program `{name}` on this machine: install its package")
    })?;
    let program = fs::canonicalize(&found)?;
    put(tree, &found, &program)?;
    let mut needed = libraries(&program)?;
    if name.contains("tables") {
        for entry in fs::read_dir(EXTENSIONS)? {
            let path = entry?.path();
            put(tree, &path, &path)?;
            needed.extend(libraries(&path)?);
        }
    }
    put_all(tree, &needed)
}

/// Adds what a program needs, if it is not static.
pub(crate) fn add_of(tree: &mut Tree, program: &Path) -> Result<()> {
    put_all(tree, &libraries(program)?)
}

fn put_all(tree: &mut Tree, libraries: &BTreeSet<PathBuf>) -> Result<()> {
    libraries
        .iter()
        .try_for_each(|library| put(tree, library, library))
}

/// Links are followed: what is found under a path is what stands there.
fn put(tree: &mut Tree, at: &Path, from: &Path) -> Result<()> {
    let bytes = fs::read(from).with_context(|| format!("{} cannot be read", from.display()))?;
    let path = at.to_string_lossy();
    tree.put(path.trim_start_matches('/'), File::program(bytes));
    Ok(())
}

/// As the loader finds them; none of a static program.
fn libraries(program: &Path) -> Result<BTreeSet<PathBuf>> {
    let ran = Command::new("ldd")
        .arg(program)
        .output()
        .context("ldd cannot be started")?;
    let printed = String::from_utf8(ran.stdout)?;
    let said = String::from_utf8(ran.stderr)?;
    if said.contains("not a dynamic executable") || printed.contains("statically linked") {
        return Ok(BTreeSet::new());
    }
    if !ran.status.success() {
        bail!("ldd {}: {}", program.display(), said.trim());
    }
    let paths = printed.lines().filter_map(|line| {
        // `libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x…)`, and the loader itself without an arrow.
        let path = line.split_once("=>").map_or(line, |(_, path)| path).trim();
        let path = path.split_once(" (").map_or(path, |(path, _)| path);
        path.starts_with('/').then(|| PathBuf::from(path))
    });
    Ok(paths.collect())
}
