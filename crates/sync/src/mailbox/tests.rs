//! What a slow consumer is told.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use Status::{InSync, ResyncInProgress};

fn delta(name: &str, is_new: bool, state: State<()>) -> Delta<()> {
    let name = Name::new("", name);
    Delta {
        name,
        is_new,
        state,
    }
}

fn put(name: &str, is_new: bool, content: &str) -> Delta<()> {
    delta(name, is_new, State::Unreadable(content.to_owned(), None))
}

fn post(mailbox: &Mailbox<()>, deltas: Vec<Delta<()>>) {
    mailbox.post(0, deltas, InSync);
}

#[track_caller]
fn check(mailbox: &Mailbox<()>, status: Status, expected: &[(&str, &str)]) {
    let taken = mailbox.take().unwrap();
    assert_eq!(taken.status, status);
    let objects: Vec<_> = taken
        .objects
        .iter()
        .map(|Changed { name, state, .. }| {
            let content = match state {
                State::Unreadable(content, _) => content,
                _ => "gone",
            };
            (name.name(), content)
        })
        .collect();
    assert_eq!(objects, expected);
    assert!(mailbox.take().is_none());
}

#[test]
fn the_newest_state_waits_in_the_place_of_the_first() {
    let mailbox = Mailbox::new(2, None);
    assert!(mailbox.take().is_none());
    post(&mailbox, vec![put("a", true, "1"), put("b", true, "1")]);
    post(&mailbox, vec![put("c", true, "1"), put("a", false, "2")]);
    check(
        &mailbox,
        ResyncInProgress,
        &[("a", "2"), ("b", "1"), ("c", "1")],
    );
}

#[test]
fn what_the_consumer_never_heard_of_does_not_wait_when_it_is_gone() {
    let mailbox = Mailbox::new(1, None);
    post(&mailbox, vec![put("a", true, "1")]);
    check(&mailbox, InSync, &[("a", "1")]);
    let gone = |name| delta(name, false, State::Absent);
    for _ in 0..3 {
        post(&mailbox, vec![gone("a"), put("b", true, "1"), gone("b")]);
        post(&mailbox, vec![put("a", true, "2")]);
    }
    check(&mailbox, InSync, &[("a", "2")]);
    post(&mailbox, vec![gone("a")]);
    post(&mailbox, vec![put("a", true, "3"), gone("a")]);
    check(&mailbox, InSync, &[("a", "gone")]);
    post(&mailbox, vec![put("b", true, "1"), gone("b")]);
    assert!(mailbox.take().is_none());
}

#[test]
fn the_consumer_is_woken_once_for_all_that_waits() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&calls);
    let wake: Wake = Arc::new(move || {
        counter.fetch_add(1, Ordering::Relaxed);
    });
    let mailbox = Mailbox::new(1, Some(wake));
    post(&mailbox, vec![]);
    post(&mailbox, vec![put("a", true, "1")]);
    assert_eq!(calls.load(Ordering::Relaxed), 1);
    check(&mailbox, InSync, &[("a", "1")]);
    post(&mailbox, vec![]);
    assert_eq!(calls.load(Ordering::Relaxed), 1);
    post(&mailbox, vec![put("a", false, "2")]);
    assert_eq!(calls.load(Ordering::Relaxed), 2);
}

#[test]
fn a_blocked_thread_is_woken() {
    let mailbox = Mailbox::new(1, None);
    assert!(mailbox.receive_timeout(Duration::from_millis(1)).is_none());
    std::thread::scope(|scope| {
        let consumer = scope.spawn(|| mailbox.receive_timeout(Duration::from_mins(1)));
        post(&mailbox, vec![put("a", true, "1")]);
        assert_eq!(consumer.join().unwrap().unwrap().objects.len(), 1);
    });
}
