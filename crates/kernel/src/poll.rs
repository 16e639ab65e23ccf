//! Waiting for several things at once on a thread that blocks.
//!
//! A loop waits for the descriptors of what it listens to and of a [`Waker`], whose clones other threads hold:
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::os::fd::AsFd as _;
//! use tortie_kernel::monitor::{Monitor, Topics};
//! use tortie_kernel::poll::{Waker, wait};
//!
//! let mut monitor = Monitor::open(Topics::default())?;
//! let waker = Waker::new()?;
//! loop {
//!     let ready = wait(&[monitor.as_fd(), waker.as_fd()], None)?;
//!     if ready[0] {
//!         let events = monitor.drain()?;
//!     }
//!     if ready[1] {
//!         waker.clear();
//!     }
//! }
//! # }
//! ```

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;

/// Waits until one of the descriptors can be read, or until the time is over, and tells for each whether it can.
///
/// One that failed or whose other end was closed counts as readable: reading tells.
pub fn wait(descriptors: &[BorrowedFd<'_>], timeout: Option<Duration>) -> io::Result<Vec<bool>> {
    let mut polled: Vec<PollFd<'_>> = descriptors
        .iter()
        .map(|descriptor| PollFd::from_borrowed_fd(*descriptor, PollFlags::IN))
        .collect();
    // A time too far away to be said is never.
    let end = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    loop {
        let left = end.map(|end| end.saturating_duration_since(Instant::now()));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut polled, left.as_ref()) {
            Ok(_) => return Ok(polled.iter().map(|one| !one.revents().is_empty()).collect()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Wakes a thread that waits, from any other thread. Clones wake the same.
///
/// Waking an awake thread is not lost: it does not fall asleep the next time, until it calls [`Waker::clear`].
#[derive(Debug, Clone)]
pub struct Waker {
    event: Arc<OwnedFd>,
}

impl Waker {
    /// A waker that has not woken anyone yet.
    pub fn new() -> io::Result<Self> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self {
            event: Arc::new(event),
        })
    }

    /// Makes the descriptor readable.
    pub fn wake(&self) {
        // It fails only if it was woken 2⁶⁴ times without being cleared, and is readable then.
        let _ = rustix::io::write(&self.event, &1_u64.to_ne_bytes());
    }

    /// Makes the descriptor no longer readable. To be called before looking at what there is to do.
    pub fn clear(&self) {
        // It fails only if it is clear already.
        let _ = rustix::io::read(&self.event, &mut [0; 8]);
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;
    use std::thread;
    use std::time::{Duration, Instant};

    use super::{Waker, wait};

    #[test]
    fn another_thread_wakes() {
        let (waker, other) = (Waker::new().unwrap(), Waker::new().unwrap());
        let elsewhere = waker.clone();
        let thread = thread::spawn(move || {
            thread::sleep(Duration::from_millis(20));
            elsewhere.wake();
        });
        assert_eq!(
            wait(&[other.as_fd(), waker.as_fd()], None).unwrap(),
            [false, true]
        );
        thread.join().unwrap();
    }

    #[test]
    fn waking_lasts_until_it_is_cleared_and_then_the_time_passes() {
        let waker = Waker::new().unwrap();
        let is_ready = |milliseconds| {
            wait(&[waker.as_fd()], Some(Duration::from_millis(milliseconds))).unwrap()[0]
        };
        waker.wake();
        waker.wake();
        assert!(is_ready(0) && is_ready(60_000));
        waker.clear();
        waker.clear();
        let start = Instant::now();
        assert!(!is_ready(0) && !is_ready(30));
        assert!(start.elapsed() >= Duration::from_millis(30));
    }
}
