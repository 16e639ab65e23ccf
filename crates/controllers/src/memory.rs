//! Gives memory back to the system: reading everything at the start, and comparing it later, needs much for a short time.

use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::sleep;
use tortie_kernel::release_unused_memory;

/// The pauses double from the one, as most is freed at the start, to the other, which is how often everything is compared.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_mins(5);

/// Gives back what is free now and then.
pub(crate) async fn give_back() {
    let mut pause = FIRST_PAUSE;
    loop {
        sleep(pause).await;
        // It may take some milliseconds. If it cannot run, the process is ending.
        let _ = spawn_blocking(release_unused_memory).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}
