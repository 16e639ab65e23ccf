//! Finds and opens the datastore for people: options win over the configuration file, and the file over the environment.

mod connect;
mod target;
mod waiting;

pub(crate) use connect::{
    await_with, cluster, connect, connect_to_write, data_file, data_folder, embedded,
    make_data_folder, open, open_target, open_to_write,
};
pub(crate) use target::{find_target, target_of_up};
