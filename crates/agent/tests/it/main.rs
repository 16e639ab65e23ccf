//! What needs no root: the agent's configuration, a node's start, and following each datastore.

mod accepted;
mod datastores;
mod startup;
