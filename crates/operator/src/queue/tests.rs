use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use tokio::time::{advance, timeout};

use super::*;

fn queue(backoff: Backoff, rate: Option<Rate>) -> Queue<u32> {
    Queue::new(QueueOptions {
        name: "test".to_owned(),
        backoff,
        rate,
    })
}

fn plain() -> Queue<u32> {
    queue(Backoff::default(), None)
}

const MOMENT: Duration = Duration::from_millis(1);

async fn next_now(queue: &Queue<u32>) -> Option<u32> {
    timeout(MOMENT, queue.next()).await.ok().flatten()
}

#[tokio::test(start_paused = true)]
async fn keys_come_once_in_the_order_they_were_added() {
    let queue = plain();
    for key in [3, 1, 3, 2, 1] {
        queue.add(key);
    }
    assert_eq!(queue.len(), 3);
    for key in [3, 1, 2] {
        assert_eq!(next_now(&queue).await, Some(key));
    }
    assert_eq!(next_now(&queue).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_added_while_it_is_held_comes_again_after_it_is_done() {
    let queue = plain();
    queue.add(1);
    assert_eq!(queue.next().await, Some(1));
    queue.add(1);
    queue.add(1);
    assert_eq!(next_now(&queue).await, None);
    queue.done(&1);
    assert_eq!(next_now(&queue).await, Some(1));
    queue.done(&1);
    assert_eq!(next_now(&queue).await, None);
}

#[tokio::test(start_paused = true)]
async fn of_several_delays_the_shortest_counts() {
    let queue = plain();
    queue.add_after(1, Duration::from_secs(10));
    queue.add_after(1, Duration::from_secs(2));
    queue.add_after(1, Duration::from_secs(5));
    let start = Instant::now();
    assert_eq!(queue.next().await, Some(1));
    assert_eq!(start.elapsed().as_secs(), 2);
    queue.done(&1);
    assert!(timeout(Duration::from_mins(1), queue.next()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_sleeper_is_woken_by_an_earlier_key() {
    let queue = plain();
    queue.add_after(1, Duration::from_mins(1));
    let sleeper = tokio::spawn({
        let queue = queue.clone();
        async move { (queue.next().await, Instant::now()) }
    });
    let start = Instant::now();
    advance(Duration::from_secs(1)).await;
    queue.add_after(2, Duration::from_secs(3));
    let (key, at) = sleeper.await.unwrap();
    assert_eq!((key, at.duration_since(start).as_secs()), (Some(2), 4));
}

#[tokio::test(start_paused = true)]
async fn close_ends_those_who_wait_and_what_waits() {
    let queue = plain();
    let waiting = tokio::spawn({
        let queue = queue.clone();
        async move { queue.next().await }
    });
    tokio::task::yield_now().await;
    queue.close();
    assert_eq!(waiting.await.unwrap(), None);
    queue.add(1);
    queue.add_after(2, MOMENT);
    assert_eq!(queue.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn retries_wait_longer_each_time_until_they_are_forgotten() {
    let backoff = Backoff {
        first: Duration::from_millis(100),
        most: Duration::from_secs(3),
        jitter: 0.0,
    };
    let queue = queue(backoff, None);
    let mut waits = Vec::new();
    for _ in 0..7 {
        let start = Instant::now();
        queue.retry(1);
        assert_eq!(queue.next().await, Some(1));
        waits.push(start.elapsed().as_millis());
        queue.done(&1);
    }
    assert_eq!(waits, [100, 200, 400, 800, 1600, 3000, 3000]);
    assert_eq!(queue.retries(&1), 7);
    queue.forget(&1);
    assert_eq!(queue.retries(&1), 0);
    let start = Instant::now();
    queue.retry(1);
    queue.next().await;
    assert_eq!(start.elapsed().as_millis(), 100);
}

#[tokio::test(start_paused = true)]
async fn many_retries_at_once_come_at_the_rate() {
    let backoff = Backoff {
        first: MOMENT,
        ..Backoff::default()
    };
    let rate = Rate {
        per_second: 10.0,
        burst: 5,
    };
    let queue = queue(backoff, Some(rate));
    let start = Instant::now();
    (0..25).for_each(|key| queue.retry(key));
    for _ in 0..5 {
        queue.next().await;
    }
    assert!(start.elapsed() < Duration::from_millis(10));
    for _ in 0..20 {
        queue.next().await;
    }
    assert_eq!(start.elapsed().as_millis() / 100, 20);
}

/// Workers on real threads never hold the same key, and see each key after it was last added.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_key_is_lost_or_held_twice_under_load() {
    const KEYS: u32 = 20;
    let queue = queue(
        Backoff {
            first: Duration::from_micros(50),
            most: Duration::from_millis(1),
            jitter: 0.5,
        },
        None,
    );
    let wanted: Arc<Vec<AtomicUsize>> = Arc::new((0..KEYS).map(|_| AtomicUsize::new(0)).collect());
    let seen: Arc<Vec<AtomicUsize>> = Arc::new((0..KEYS).map(|_| AtomicUsize::new(0)).collect());
    let held: Arc<Vec<AtomicUsize>> = Arc::new((0..KEYS).map(|_| AtomicUsize::new(0)).collect());
    let mut workers = Vec::new();
    for _ in 0..8 {
        let (queue, wanted, seen, held) = (
            queue.clone(),
            Arc::clone(&wanted),
            Arc::clone(&seen),
            Arc::clone(&held),
        );
        workers.push(tokio::spawn(async move {
            let mut round = 0_u32;
            while let Some(key) = queue.next().await {
                let index = key as usize;
                assert_eq!(
                    held[index].fetch_add(1, Ordering::SeqCst),
                    0,
                    "{key} is held twice"
                );
                let version = wanted[index].load(Ordering::SeqCst);
                tokio::task::yield_now().await;
                seen[index].fetch_max(version, Ordering::SeqCst);
                held[index].fetch_sub(1, Ordering::SeqCst);
                round += 1;
                if round.is_multiple_of(7) {
                    queue.retry(key);
                } else {
                    queue.forget(&key);
                }
                queue.done(&key);
            }
        }));
    }
    for round in 0..20_000_u32 {
        let key = round * 7919 % KEYS;
        wanted[key as usize].fetch_add(1, Ordering::SeqCst);
        queue.add(key);
        if round % 64 == 0 {
            tokio::task::yield_now().await;
        }
    }
    let all_seen = || {
        (0..KEYS as usize)
            .all(|i| seen[i].load(Ordering::SeqCst) == wanted[i].load(Ordering::SeqCst))
    };
    timeout(Duration::from_mins(1), async {
        while !all_seen() {
            tokio::time::sleep(MOMENT).await;
        }
    })
    .await
    .expect("every key is seen as it was last wanted");
    queue.close();
    for worker in workers {
        worker.await.unwrap();
    }
}

#[derive(Clone, Debug)]
enum Step {
    Add(u32),
    AddAfter(u32, u64),
    Retry(u32),
    Take,
    Done(usize),
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..5_u32).prop_map(Step::Add),
        2 => (0..5_u32, 0..500_u64).prop_map(|(key, delay)| Step::AddAfter(key, delay)),
        1 => (0..5_u32).prop_map(Step::Retry),
        3 => Just(Step::Take),
        3 => (0..5_usize).prop_map(Step::Done),
        1 => (0..300_u64).prop_map(Step::Wait),
    ]
}

proptest! {
    /// Whatever happens: nobody gets a key that another holds, and at the end each key that was added after it was
    /// last taken comes out exactly once.
    #[test]
    fn nothing_is_lost_and_nothing_is_held_twice(steps in prop::collection::vec(step(), 1..120)) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let queue = plain();
            let mut held = Vec::new();
            let mut owed = HashSet::new();
            for step in steps {
                match step {
                    Step::Add(key) => {
                        queue.add(key);
                        owed.insert(key);
                    }
                    Step::AddAfter(key, delay) => {
                        queue.add_after(key, Duration::from_millis(delay));
                        owed.insert(key);
                    }
                    Step::Retry(key) => {
                        queue.retry(key);
                        owed.insert(key);
                    }
                    Step::Take => {
                        if let Some(key) = next_now(&queue).await {
                            prop_assert!(!held.contains(&key), "{} is held twice", key);
                            held.push(key);
                            // What it is owed for may be due later as well.
                            owed.retain(|other| *other != key || queue.lock().due.contains_key(&key));
                        }
                    }
                    Step::Done(index) => {
                        if !held.is_empty() {
                            let key = held.swap_remove(index % held.len());
                            queue.done(&key);
                        }
                    }
                    Step::Wait(millis) => advance(Duration::from_millis(millis)).await,
                }
            }
            held.drain(..).for_each(|key| queue.done(&key));
            while let Ok(Some(key)) = timeout(Duration::from_mins(2), queue.next()).await {
                owed.remove(&key);
                queue.done(&key);
            }
            prop_assert!(owed.is_empty(), "lost: {:?}", owed);
            let state = queue.lock();
            prop_assert!(state.due.is_empty() && state.wanted.is_empty() && state.held.is_empty());
            Ok(())
        })?;
    }
}
