//! What needs neither root nor servers: the agent's configuration.

mod config;
