//! What needs a real kube-apiserver: the framework with it.

mod kubernetes;
