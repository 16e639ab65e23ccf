use super::*;

fn key(name: &str) -> ObjectKey {
    ObjectKey::cluster(name)
}

fn applied(value: u32) -> Change<u32> {
    Change::Applied(Arc::new(value))
}

fn deleted(value: u32) -> Change<u32> {
    Change::Deleted(Arc::new(value))
}

fn drain(mailbox: &Mailbox<u32>) -> Vec<String> {
    let mut state = mailbox.lock();
    std::iter::from_fn(|| state.take())
        .map(|event| {
            let before = event.before.as_deref();
            match event.change {
                Change::Applied(now) => format!("{} {before:?} -> {now}", event.key),
                Change::Deleted(_) => format!("{} {before:?} -> gone", event.key),
            }
        })
        .collect()
}

#[test]
fn only_the_newest_state_is_told_with_the_last_that_was_told() {
    let mailbox = Mailbox::new();
    mailbox.put(&key("a"), Some(Arc::new(1)), applied(2));
    mailbox.put(&key("b"), None, applied(7));
    mailbox.put(&key("a"), Some(Arc::new(2)), applied(3));
    mailbox.put(&key("a"), Some(Arc::new(3)), deleted(3));
    assert_eq!(drain(&mailbox), ["a Some(1) -> gone", "b None -> 7"]);
}

#[test]
fn what_came_and_went_unseen_is_not_told() {
    let mailbox = Mailbox::new();
    mailbox.put(&key("a"), None, applied(1));
    mailbox.put(&key("a"), Some(Arc::new(1)), deleted(1));
    mailbox.put(&key("b"), None, applied(1));
    assert_eq!(drain(&mailbox), ["b None -> 1"]);
}

#[test]
fn what_went_and_came_again_is_told_as_a_change() {
    let mailbox = Mailbox::new();
    mailbox.put(&key("a"), Some(Arc::new(1)), deleted(1));
    mailbox.put(&key("a"), None, applied(2));
    assert_eq!(drain(&mailbox), ["a Some(1) -> 2"]);
}

#[test]
fn names_that_come_and_go_do_not_fill_the_mailbox_of_who_does_not_read() {
    let mailbox = Mailbox::new();
    mailbox.put(&key("stays"), None, applied(0));
    for round in 0..10_000 {
        let name = key(&format!("pod-{round}"));
        mailbox.put(&name, None, applied(round));
        mailbox.put(&name, Some(Arc::new(round)), deleted(round));
    }
    assert!(mailbox.lock().order.len() < 100);
    assert_eq!(drain(&mailbox), ["stays None -> 0"]);
}
