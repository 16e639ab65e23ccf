//! The command line as its users see it; modules `etcd` and `kubernetes` need those servers.

mod cli;
