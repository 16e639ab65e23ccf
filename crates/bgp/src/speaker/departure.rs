//! A node that leaves for good: a file beside BIRD's socket says so until the node starts anew.
//!
//! A file, and no request to the process: whoever supervises `tortie bgp` starts it again, and it must not bring BIRD back.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::sleep;

/// The name of the file. It goes with a restart of the machine, as the socket does.
const FILE: &str = "bgp-node-leaves";

/// How often the file is looked for.
const INTERVAL: Duration = Duration::from_millis(500);

/// The node leaves: whoever keeps BIRD here withdraws its routes, and does not start it again.
pub fn leave(run_folder: &Path) -> io::Result<()> {
    fs::create_dir_all(run_folder)?;
    let text = "`tortie node shutdown` wrote this; `tortie node startup` removes it.\n";
    tortie_files::replace(&file(run_folder), text, tortie_files::PUBLIC)
}

/// The node is back.
pub fn come_back(run_folder: &Path) -> io::Result<()> {
    match fs::remove_file(file(run_folder)) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Waits until the node leaves, or until it is back.
pub(super) async fn until(run_folder: &Path, is_leaving: bool) {
    while self::is_leaving(run_folder) != is_leaving {
        sleep(INTERVAL).await;
    }
}

pub(super) fn is_leaving(run_folder: &Path) -> bool {
    file(run_folder).exists()
}

fn file(run_folder: &Path) -> PathBuf {
    run_folder.join(FILE)
}
