//! What needs root, namespaces or servers: the program as a whole.

mod bgp;
mod bgp_answers;
mod checksystem;
mod cni;
mod confirm;
mod controllers;
mod datastore;
mod demo;
mod diags;
mod install;
mod ipam;
mod killed;
mod multi_node;
mod operator;
mod render;
mod up;
