//! What needs a real kube-apiserver: each controller by itself.

mod cluster;
mod ip_pool;
mod ipam_gc;
mod load_balancer;
mod tier;
