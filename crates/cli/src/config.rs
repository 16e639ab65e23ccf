//! Which datastore to use, and how to reach it.
//!
//! The same settings can come from calicoctl's configuration file and from the environment, where each variable may
//! also carry the prefix `CALICO_`, which wins. Options on the command line win over the file, and the file over the
//! environment.

mod connect;
mod felix;
mod settings;
mod target;
mod waiting;

pub(crate) use connect::{
    Backend, Connection, ROOTS_FOLDER, await_with, cluster, connect, connect_to_write, data_file,
    data_folder, embedded, make_data_folder, open, open_target, open_to_write,
};
pub(crate) use felix::felix_variable;
pub(crate) use settings::{Settings, Source};
pub(crate) use target::Target;

/// The variable that names the folder of the embedded datastore.
pub(crate) const DATA_FOLDER_VARIABLE: &str = "TORTIE_DATA_DIR";

/// The file that calicoctl reads unless told otherwise.
pub(crate) const DEFAULT_FILE: &str = "/etc/calico/calicoctl.cfg";
