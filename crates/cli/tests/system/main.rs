//! What needs root, namespaces or servers: the program as a whole.

mod bgp;
mod checksystem;
mod cni;
mod confirm;
mod controllers;
mod datastore;
mod demo;
mod diags;
mod ipam;
mod killed;
mod multi_node;
mod operator;
mod render;
mod up;
