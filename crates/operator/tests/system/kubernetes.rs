//! The framework on a real kube-apiserver.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod cache;
mod controllers;
mod leader;
mod manager;
mod scale;
mod support;
mod webhooks;
