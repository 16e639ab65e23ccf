//! Address management from outside; the module `kubernetes` needs that server, `vectors` and `model::real` need etcd.

mod behaviour;
mod ensure_block;
mod kubernetes;
mod model;
mod owners;
mod vectors;
