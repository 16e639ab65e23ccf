//! What needs a real kube-apiserver or kubectl.

mod aggregated;
mod kubectl;
