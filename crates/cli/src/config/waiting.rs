//! Shows a person that something is being waited for.

use std::io::IsTerminal as _;
use std::pin::pin;
use std::time::Duration;

use indicatif::ProgressBar;

/// What takes less is not worth a word.
const SHORT: Duration = Duration::from_secs(1);

/// How often the sign of life moves.
const TICK: Duration = Duration::from_millis(120);

/// Waits for an answer; on a terminal it is shown who is waited for.
pub(super) async fn waiting<T>(whom: &str, answer: impl Future<Output = T>) -> T {
    let mut answer = pin!(answer);
    if !std::io::stderr().is_terminal() {
        return answer.await;
    }
    tokio::select! {
        answer = &mut answer => return answer,
        () = tokio::time::sleep(SHORT) => {}
    }
    let sign = ProgressBar::new_spinner();
    sign.set_message(format!("waiting for {whom}"));
    sign.enable_steady_tick(TICK);
    let answer = answer.await;
    sign.finish_and_clear();
    answer
}
