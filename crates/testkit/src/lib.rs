//! Real servers for tests: etcd and kube-apiserver, and the reference data that tests compare with; [`net`]: nodes, pods
//! and packets between them; [`cni`]: plugins called as a container runtime calls them; [`chaos`]: faults drawn at random;
//! [`machine`]: a machine of a test's own, and users of it.
//!
//! ```no_run
//! # fn main() -> Result<(), tortie_testkit::Error> {
//! let etcd = tortie_testkit::Etcd::start()?;
//! etcd.etcdctl(&["put", "/calico/a", "1"])?;
//!
//! let cluster = tortie_testkit::KubeApiServer::shared();
//! cluster.kubectl(&["get", "namespaces"])?.into_stdout()?;
//! # Ok(())
//! # }
//! ```
//!
//! Everything here blocks and names no async runtime. `setup/test-deps` installs and builds what it
//! starts.
//!
//! # Invariants
//! - A server listens on a free port of 127.0.0.1 and keeps all it writes in one temporary folder.
//! - It ends with its value, and also with the test's process, however that ends: see the private
//!   module `server`.
//! - Nothing of the user's environment reaches a server or a client: no `ETCDCTL_…`, no
//!   `KUBECONFIG`, no proxy, no `HOME`.
//!
//! # One server for many tests
//! [`KubeApiServer::shared`] is one server for all tests of a program in a run, which have to use names of their own: they
//! run at the same time. [`Etcd::shared`], which starts in a fraction of a second, is one per process.

mod certs;
pub mod chaos;
pub mod cni;
mod command;
mod error;
mod etcd;
mod kube_api_server;
pub mod machine;
pub mod net;
mod random;
mod server;
mod vectors;

pub use command::Output;
pub use error::{Error, Result};
pub use etcd::{Etcd, EtcdConfig, Tls};
pub use kube_api_server::KubeApiServer;
pub use random::Random;
pub use vectors::{
    bird_statements, calico_folder, read_labels_as_yaml_1_1, vector_folders, vectors,
};
