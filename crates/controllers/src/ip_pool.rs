//! Says of each pool whether addresses can be taken from it, and holds its deletion up until nobody has any.
//!
//! Only for clusters whose users write pools straight into `projectcalico.org/v3` custom resources: there nobody else keeps
//! two pools from covering the same addresses.
//!
//! # Invariants
//! - Of pools that overlap only one is allocatable, and it stays the same one while it exists.
//! - A pool that is not allocatable has no finalizer: the blocks in it belong to another.

mod controller;
mod desired;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use tortie_operator::Manager;
use tortie_store::Store;

/// Adds the controller. It runs while the process leads.
pub fn add(manager: &Manager, store: Arc<dyn Store>) {
    manager.run_as_leader("ippool", |_| async {
        run(store).await;
        Ok(())
    });
}

/// Keeps pools in order until the future is dropped.
pub async fn run(store: Arc<dyn Store>) {
    controller::Controller::new(store).run().await;
}
