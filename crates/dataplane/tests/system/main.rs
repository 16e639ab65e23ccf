//! What needs root: the drivers with a real kernel.

mod differential;
mod enforcement;
mod iptables;
mod left_over;
mod nftables;

// Worlds, and those who live there, are drawn as in the engine's own tests.
#[path = "../../../convert/tests/it/verdict"]
#[expect(dead_code, reason = "the engine's own tests use all of it")]
mod verdict {
    pub(crate) mod random;
    pub(crate) mod world;
    pub(crate) mod evaluate {
        pub(crate) mod party;
    }
}
