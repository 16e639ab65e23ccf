//! What needs no root: the agent's configuration, and following each datastore.

mod config;
mod datastores;
