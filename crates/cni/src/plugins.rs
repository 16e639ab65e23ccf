//! The plugins that the CNI project has under the same names: what they have in common.
//!
//! They do what those do, and can take turns with them: files, names of devices and results are the same.
//!
//! # Invariants
//! - Each does a DEL that is repeated, or for a container that it never saw, without an error.
//! - What another plugin had as its result is passed on with all that it said.

mod bandwidth;
mod host_local;
mod loopback;
mod owner;
mod portmap;
mod previous;
mod sandbox;
mod tuning;

use serde::Deserialize;
use serde_json::Value;

use crate::config::{self, Attachment};
use crate::error::{Code, Error, Result};
use crate::plugin::Plugin;
use crate::request::{Command, Request};
use crate::version::CniVersion;
use previous::Previous;

/// What a plugin is asked, and what all of them are told.
struct Call<'a> {
    request: &'a Request,
    version: CniVersion,
    /// The name of the network.
    network: String,
    previous: Option<Previous>,
    /// The containers that there are, for GC.
    valid: Option<Vec<Attachment>>,
    /// The whole configuration, without fields that are `null`.
    config: Value,
    /// The same as it came.
    raw: &'a [u8],
}

/// The fields that every configuration has.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Common {
    #[serde(rename = "cniVersion")]
    version: String,
    name: String,
    #[serde(rename = "prevResult")]
    previous: Option<Value>,
    #[serde(rename = "cni.dev/valid-attachments")]
    valid: Option<Vec<Attachment>>,
}

/// Does what a runtime asks. Only ADD has an answer.
pub(crate) fn answer(plugin: Plugin, request: &Request, raw: &[u8]) -> Result<Option<Value>> {
    let call = Call::read(request, raw)?;
    crate::plugin::check_command(request.command, call.version)?;
    match (plugin, request.command) {
        (Plugin::Loopback, Command::Add) => loopback::add(&call).map(Some),
        (Plugin::Loopback, Command::Del) => loopback::del(&call).map(|()| None),
        (Plugin::Loopback, Command::Check) => loopback::check(&call).map(|()| None),
        (Plugin::HostLocal, Command::Add) => host_local::add(&call).map(Some),
        (Plugin::HostLocal, Command::Del) => host_local::del(&call).map(|()| None),
        (Plugin::HostLocal, Command::Check) => host_local::check(&call).map(|()| None),
        (Plugin::HostLocal, Command::Status) => host_local::status(&call).map(|()| None),
        (Plugin::HostLocal, Command::Gc) => host_local::gc(&call).map(|()| None),
        (Plugin::Portmap, Command::Add) => portmap::add(&call).map(Some),
        (Plugin::Portmap, Command::Del) => portmap::del(&call).map(|()| None),
        (Plugin::Portmap, Command::Check) => portmap::check(&call).map(|()| None),
        (Plugin::Portmap, Command::Status) => portmap::status(&call).map(|()| None),
        (Plugin::Portmap, Command::Gc) => portmap::gc(&call).map(|()| None),
        (Plugin::Bandwidth, Command::Add) => bandwidth::add(&call).map(Some),
        (Plugin::Bandwidth, Command::Del) => bandwidth::del(&call).map(|()| None),
        (Plugin::Bandwidth, Command::Check) => bandwidth::check(&call).map(|()| None),
        (Plugin::Bandwidth, Command::Gc) => bandwidth::gc(&call).map(|()| None),
        (Plugin::Tuning, Command::Add) => tuning::add(&call).map(Some),
        (Plugin::Tuning, Command::Del) => tuning::del(&call).map(|()| None),
        (Plugin::Tuning, Command::Check) => tuning::check(&call).map(|()| None),
        // Calico's own are answered elsewhere; others have nothing that could be missing or left behind.
        _ => Ok(None),
    }
}

/// Reads the configuration of a plugin, as at an ADD, and does nothing else.
pub(crate) fn check_config(plugin: Plugin, request: &Request, raw: &[u8]) -> Result<()> {
    let call = Call::read(request, raw)?;
    match plugin {
        Plugin::Calico | Plugin::CalicoIpam | Plugin::Loopback => Ok(()),
        Plugin::HostLocal => host_local::check_config(&call),
        Plugin::Portmap => portmap::check_config(&call),
        Plugin::Bandwidth => bandwidth::check_config(&call),
        Plugin::Tuning => tuning::check_config(&call),
    }
}

impl<'a> Call<'a> {
    fn read(request: &'a Request, raw: &'a [u8]) -> Result<Self> {
        let config = config::read_json(raw)?;
        let common: Common = config::decode(&config)?;
        let version: CniVersion = config::parse_version(&common.version)?;
        config::check_name(&common.name)?;
        let previous = common.previous.map(|value| Previous::read(value, version));
        Ok(Self {
            request,
            version,
            network: common.name,
            previous: match previous.transpose() {
                // What is to be undone does not depend on it.
                Err(_) if request.command == Command::Del => None,
                read => read?,
            },
            valid: common.valid,
            config,
            raw,
        })
    }

    /// The fields that the plugin alone has.
    fn settings<T: for<'de> Deserialize<'de>>(&self) -> Result<T> {
        config::decode(&self.config)
    }

    /// The result of the plugins before this one, without which it cannot be.
    fn previous(&self) -> Result<&Previous> {
        self.previous.as_ref().ok_or_else(|| {
            let message = "network configuration: `prevResult` is missing: this plugin comes after others, in a list";
            Error::config(message)
        })
    }

    /// Whether an ADD of this container is known to the runtime, for GC.
    fn is_valid(&self, container: &str, interface: Option<&str>) -> Result<bool> {
        let valid = self.valid.as_ref().ok_or_else(|| {
            let message = "network configuration: `cni.dev/valid-attachments` is missing";
            Error::config(message)
        })?;
        Ok(valid.iter().any(|attachment| {
            attachment.container_id == container
                && interface.is_none_or(|interface| attachment.ifname == interface)
        }))
    }
}

/// CHECK found something else than what ADD left.
fn unlike(problem: impl Into<String>) -> Error {
    Error::new(Code::Unlike, problem)
}
