//! Serves resources over the Kubernetes API conventions.

pub mod access;
pub mod aggregated;
pub mod apply;
pub mod audit;
pub mod custom;
pub mod discovery;
pub mod failure;
pub mod http;
pub mod hub;
pub mod openapi;
pub mod options;
pub mod patch;
pub mod path;
pub mod protobuf;
pub mod registry;
pub mod selector;
pub mod server;
pub mod service;
pub mod standalone;
pub mod storage;
pub mod structure;
pub mod table;
pub mod webhooks;

pub use failure::{Failure, Result};
