//! The server behind that of Kubernetes, the admission webhooks, and serving itself, with a real kube-apiserver, a real
//! etcd and the real kubectl.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod creation;
mod direct;
mod kubectl;
mod protobuf;
mod roles;
mod serving;
mod support;
mod tiers;
mod webhooks;
