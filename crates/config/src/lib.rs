//! The configuration of a node: the parameters of Calico's node agent, from the environment, a file and the datastore.
//!
//! Agent, engine, rules and the explanation of verdicts share it, so that none of them can have another view of it.
//!
//! ```
//! use tortie_config::{Origin, Sources, resolve};
//!
//! let mut sources = Sources::default();
//! sources.datastore.global.insert("InterfacePrefix".into(), "tap,cali".into());
//! sources.environment.insert("interfaceprefix".into(), "cali".into());
//! sources.environment.insert("logseverityscreen".into(), "loud".into());
//!
//! let resolved = resolve(&sources);
//! assert_eq!(resolved.config.interfaces.prefixes, ["cali"]);
//! assert_eq!(resolved.origin("InterfacePrefix"), Some(Origin::Environment));
//! assert_eq!(
//!     resolved.problems[0].to_string(),
//!     "LogSeverityScreen: `loud` from the environment is not used: \
//!      expected `TRACE`, `DEBUG`, `INFO`, `WARNING`, `ERROR` or `FATAL`"
//! );
//! ```
//!
//! The way of a value: [`Sources`] hold texts, or fields of resources, by name; [`parameters`] knows each name, what it takes and what it
//! defaults to; [`resolve`] takes the first source that has a good value; [`Config`] has what the agent acts on, as types;
//! [`explain`] tells it to people.
//!
//! # Invariants
//! - Pure: what a file or the environment says is handed in as text.
//! - Nothing in a source keeps [`resolve`] from returning a complete [`Config`]. Whether to run with it is for the caller
//!   to decide: see [`Resolved::is_fatal`].
//! - A parameter is in [`Config`] if and only if the table says that it is acted on.

mod choice;
mod explain;
mod parameter;
mod parse;
mod resolve;
mod settings;
mod source;
mod table;
mod value;

pub use choice::{
    AllowAction, ChainInsertMode, ClientAuth, DenyAction, EndpointToHostAction, FlowTableOffload,
    IptablesBackend, LocalSubnetL2Reachability, LogSeverity, NatOutgoingExclusions, NftablesMode,
    ProgramClusterRoutes, RouteSource, ServiceLoopPrevention, SourceSpoofing,
};
pub use explain::{Explained, WithoutEffect, explain, without_effect};
pub use parameter::{Kind, Parameter};
pub use parse::Refused;
pub use resolve::{Problem, Reason, Resolved, Setting, resolve};
pub use settings::{
    BackendConfig, Config, EncapConfig, FailsafeConfig, HealthConfig, HostConfig, InterfaceConfig,
    IpSetConfig, MetadataConfig, MetricsConfig, NatConfig, PacketLogConfig, PolicyConfig,
    ReportingConfig, RouteConfig, TableConfig,
};
pub use source::{
    DatastoreConfig, FileError, Given, Origin, Sources, from_cluster_information, from_environment,
    from_felix_configuration, from_file,
};
pub use table::{parameter, parameters};
pub use value::{FailsafePort, Pattern, PortRange, TableRange, TransportProtocol, Value};
