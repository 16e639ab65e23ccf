//! All parameters that Calico's node agent knows, by subject.

mod bpf;
mod datastore;
mod network;
mod overlay;
mod process;
mod tables;

use super::parameter::Parameter;

const SUBJECTS: [&[Parameter]; 6] = [
    datastore::PARAMETERS,
    process::PARAMETERS,
    network::PARAMETERS,
    tables::PARAMETERS,
    overlay::PARAMETERS,
    bpf::PARAMETERS,
];

/// All parameters, in the order in which they are explained.
pub fn parameters() -> impl Iterator<Item = &'static Parameter> {
    SUBJECTS.into_iter().flatten()
}

/// The parameter of this name, in whatever case it is written.
pub fn parameter(name: &str) -> Option<&'static Parameter> {
    parameters().find(|parameter| parameter.name.eq_ignore_ascii_case(name))
}
