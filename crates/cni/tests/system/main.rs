//! What needs root or servers: plugins and their installation.

mod faults;
mod upgrade;
