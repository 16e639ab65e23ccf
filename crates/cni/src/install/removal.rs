//! Takes an installation out again: what is recognised as ours, and nothing else.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::step::{Plan, Step};
use super::{KUBECONFIG, TLS_FILES, TLS_FOLDER, own};
use crate::error::{Code, Error, Result};
use crate::plugin::Plugin;

/// The endings by which runtimes find configurations.
const ENDINGS: [&str; 3] = ["conflist", "conf", "json"];

/// Where an installation may be.
#[derive(Debug, Clone)]
pub struct Installed {
    pub binary_folders: Vec<PathBuf>,
    /// Where the configuration is.
    pub config_folder: PathBuf,
}

/// Plans the removal of an installation; an empty plan where there is none. The configuration goes first, so that no runtime
/// calls what is gone, and folders stay. What only has our names is left to who put it there.
pub fn plan_removal(installed: &Installed) -> Result<Plan> {
    let mut binaries = Vec::new();
    let mut has_other_calico = false;
    for folder in &installed.binary_folders {
        for name in own::names() {
            let path = folder.join(name);
            let failed = format!("{} cannot be read", path.display());
            if own::is_own(&path).map_err(Error::of(Code::Io, failed))? {
                binaries.push(Step::Remove { path });
            } else if name == Plugin::Calico.name() && path.exists() {
                has_other_calico = true;
            }
        }
    }
    let mut steps = Vec::new();
    // Configuration and kubeconfig have the same names and contents as Calico's own.
    if !binaries.is_empty() && !has_other_calico {
        plan_config(&installed.config_folder, &mut steps)?;
    }
    steps.append(&mut binaries);
    Ok(Plan { steps })
}

fn plan_config(folder: &Path, steps: &mut Vec<Step>) -> Result<()> {
    let failed = || Error::of(Code::Io, format!("{} cannot be read", folder.display()));
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed()(error)),
    };
    let mut configs = Vec::new();
    for entry in entries {
        let path = entry.map_err(failed())?.path();
        let has_ending = path
            .extension()
            .is_some_and(|ending| ENDINGS.iter().any(|known| ending == *known));
        if has_ending && names_calico(&fs::read(&path).unwrap_or_default()) {
            configs.push(path);
        }
    }
    configs.sort();
    steps.extend(configs.into_iter().map(|path| Step::Remove { path }));
    let kubeconfig = folder.join(KUBECONFIG);
    if kubeconfig.is_file() {
        steps.push(Step::Remove { path: kubeconfig });
    }
    let tls = folder.join(TLS_FOLDER);
    let files = TLS_FILES.iter().map(|name| tls.join(name));
    let before = steps.len();
    steps.extend(
        files
            .filter(|file| file.is_file())
            .map(|path| Step::Remove { path }),
    );
    if steps.len() > before {
        steps.push(Step::RemoveEmpty { path: tls });
    }
    Ok(())
}

/// Whether a configuration has the plugin `calico`, alone or in a list.
fn names_calico(text: &[u8]) -> bool {
    let config: Value = serde_json::from_slice(text).unwrap_or_default();
    let is_calico = |plugin: &Value| plugin["type"] == Plugin::Calico.name();
    is_calico(&config)
        || config["plugins"]
            .as_array()
            .is_some_and(|plugins| plugins.iter().any(is_calico))
}
