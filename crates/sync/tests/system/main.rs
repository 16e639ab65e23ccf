//! Followers of real servers.

mod kubernetes;
