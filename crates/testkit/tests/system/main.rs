//! What needs root or servers: the servers and namespaces that other tests use.

mod crash;
mod etcd;
mod kube_api_server;
mod net;
