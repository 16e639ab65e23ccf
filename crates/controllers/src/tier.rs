//! Holds the deletion of a tier up until no policy is in it, and says which ones are.
//!
//! Only for clusters whose users write tiers straight into `projectcalico.org/v3` custom resources: there nobody else
//! refuses to delete a tier with policies.

mod controller;
mod policies;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use tortie_operator::Manager;
use tortie_store::Store;

/// Adds the controller. It runs while the process leads.
pub fn add(manager: &Manager, store: Arc<dyn Store>) {
    manager.run_as_leader("tier", |_| async {
        run(store).await;
        Ok(())
    });
}

/// Looks after tiers until the future is dropped.
pub async fn run(store: Arc<dyn Store>) {
    controller::Controller::new(store).run().await;
}
