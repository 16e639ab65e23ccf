//! The policy engine through lists of states: what the data plane knows depends on what the datastore holds, not on
//! the way there.

mod build;
pub(crate) mod data_plane;
pub(crate) mod datastore;
pub(crate) mod flush_order;
mod list;
mod rule;
pub(crate) mod text;

mod duplicates;
mod endpoints;
mod hosts;
mod invalid;
mod ipv6;
mod kinds;
mod labels;
mod large;
mod locality;
mod mixed;
mod named_ports;
mod network;
mod network_sets;
mod order;
mod overlaps;
mod profiles;
mod roles;
mod rules;
mod selectors;
mod services;
mod tiers;
