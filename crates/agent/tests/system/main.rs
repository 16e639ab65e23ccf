//! What needs root: the agent with a real kernel.

mod e2e;
