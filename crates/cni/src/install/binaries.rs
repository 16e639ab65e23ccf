//! Which binaries go where.

use std::path::{Path, PathBuf};

use super::step::Step;
use super::{Options, Replaced, files, own};
use crate::error::{Code, Error, Result};
use crate::plugin::Plugin;

/// A file in the folder of other plugins that is none.
const INSTALLER: &str = "install";

/// The binaries of a folder are one file with several names: pages that one plugin has read are there for the next.
pub(super) fn plan(options: &Options, steps: &mut Vec<Step>) -> Result<()> {
    let others = other_plugins(options)?;
    let mut is_placed = false;
    for (place, folder) in options.binary_folders.iter().enumerate() {
        let is_made = options.make_folders && place == 0 && !folder.exists();
        if is_made {
            let path = folder.clone();
            steps.push(Step::MakeFolder { path });
        } else if !files::is_writable(folder) {
            continue;
        }
        is_placed = true;
        plan_own(options, folder, steps)?;
        for (from, name) in &others {
            let to = folder.join(name);
            if options.replaced != Replaced::None || !to.exists() {
                let from = from.clone();
                steps.push(Step::Copy { from, to });
            }
        }
    }
    let is_complete = |folder: &PathBuf| {
        let mut needed = own::names().into_iter().filter(|name| is_calicos(name));
        needed.all(|name| folder.join(name).is_file())
    };
    let may_be_there = options.replaced == Replaced::None;
    if is_placed || (may_be_there && options.binary_folders.iter().any(is_complete)) {
        return Ok(());
    }
    let folders: Vec<String> = options
        .binary_folders
        .iter()
        .map(|folder| folder.display().to_string())
        .collect();
    let message = format!(
        "no folder for binaries can be written to: {}",
        folders.join(", ")
    );
    Err(Error::new(Code::Other, message))
}

fn plan_own(options: &Options, folder: &Path, steps: &mut Vec<Step>) -> Result<()> {
    let mut first: Option<PathBuf> = None;
    for name in own::names() {
        let to = folder.join(name);
        if to.exists() {
            let unreadable = || Error::of(Code::Io, format!("{} cannot be read", to.display()));
            let is_replaced = match options.replaced {
                Replaced::None => false,
                Replaced::Usual => is_calicos(name) || own::is_own(&to).map_err(unreadable())?,
                Replaced::All => true,
            };
            if !is_replaced {
                let why = "it is there, and not to be replaced";
                steps.push(Step::Leave { path: to, why });
                continue;
            }
        }
        if let Some(first) = &first {
            let from = first.clone();
            steps.push(Step::Link { from, to });
        } else {
            let from = options.binary.clone();
            first = Some(to.clone());
            steps.push(Step::Copy { from, to });
        }
    }
    Ok(())
}

/// Whether it is one of the plugins that Calico's installer replaces too.
fn is_calicos(name: &str) -> bool {
    [Plugin::Calico, Plugin::CalicoIpam]
        .map(Plugin::name)
        .contains(&name)
}

/// Plugins that lie beside this program, as they do in images. Where one has a name of ours, ours is what is installed.
fn other_plugins(options: &Options) -> Result<Vec<(PathBuf, String)>> {
    let Some(folder) = options.other_plugins.as_deref().filter(|f| f.is_dir()) else {
        return Ok(Vec::new());
    };
    let failed = || Error::of(Code::Io, format!("{} cannot be read", folder.display()));
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed())? {
        let entry = entry.map_err(failed())?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_ours = name == INSTALLER || own::names().contains(&name.as_str());
        if !is_ours && !options.skipped.contains(&name) && entry.path().is_file() {
            found.push((entry.path(), name));
        }
    }
    found.sort();
    Ok(found)
}
