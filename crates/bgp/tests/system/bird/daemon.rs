use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tokio::sync::{mpsc, watch};
use tortie_bgp::bird::answer::Protocol;
use tortie_bgp::bird::daemon::{Options, Order, Running};
use tortie_bgp::bird::{Daemon, Error, Result};

use super::site::{BIRD, CONF, Pair, Site, await_that, block_on, kill};

/// A daemon that runs beside a test, in the network of its site.
pub(super) struct Held {
    orders: mpsc::Sender<Order>,
    pub(super) running: watch::Receiver<Option<Running>>,
    task: tokio::task::JoinHandle<Result<()>>,
}

pub(super) fn options(site: &Site) -> Options {
    Options {
        probe_interval: Duration::from_millis(200),
        probe_limit: Duration::from_millis(500),
        probe_failures: 2,
        ..Options::new(BIRD.as_ref(), &site.config(), &site.socket_path())
    }
}

impl Held {
    /// BIRD is in the network namespace of the thread that this is called on.
    pub(super) fn run(options: Options) -> Self {
        let (orders, ordered) = mpsc::channel(1);
        let (tell, running) = watch::channel(None);
        let daemon = Daemon::new(options);
        let task = tokio::spawn(async move { daemon.run(ordered, tell).await });
        Self {
            orders,
            running,
            task,
        }
    }

    /// Waits for a BIRD that is not this one.
    pub(super) async fn other_than(&mut self, process: u32) -> Running {
        let is_other =
            |one: &Option<Running>| one.as_ref().is_some_and(|one| one.process != process);
        let waited = tokio::time::timeout(Duration::from_mins(1), self.running.wait_for(is_other));
        let found = waited.await.expect("another BIRD").unwrap();
        found.clone().unwrap()
    }

    async fn order(&self, order: Order) {
        self.orders.send(order).await.unwrap();
    }
}

/// Runs a test with both sites connected, on a thread in A's network, where the daemon keeps BIRD.
fn with_daemon<T: Send>(test: impl AsyncFnOnce(&Pair, Held) -> T + Send) -> T {
    with_daemon_of(&Pair::new(), test)
}

fn with_daemon_of<T: Send>(pair: &Pair, test: impl AsyncFnOnce(&Pair, Held) -> T + Send) -> T {
    pair.a
        .namespace()
        .run(|| {
            block_on(async {
                pair.b.start();
                let held = Held::run(options(&pair.a));
                await_that("BIRD runs", async || held.running.borrow().is_some()).await;
                pair.await_sessions().await;
                await_that("the neighbour has A's routes", async || {
                    pair.b.has_route_to(pair.a.block()).await
                })
                .await;
                await_that("nobody recovers", async || {
                    let status = pair.a.socket().status().await.unwrap();
                    status.recovery.is_none()
                })
                .await;
                test(pair, held).await
            })
        })
        .unwrap()
}

/// Watches the way between both blocks while something happens to A's BIRD, until both are connected again and it is over.
async fn loses_no_route(pair: &Pair, happens: impl AsyncFnOnce()) -> String {
    let mut looks = 0;
    let mut bridged = 0;
    let (mut own, mut theirs) = (pair.a.kernel(), pair.b.kernel());
    await_that("kernels have the routes", async || {
        own.has_route_to(pair.b.block()) && theirs.has_route_to(pair.a.block())
    })
    .await;
    let watched = async {
        loop {
            assert!(
                own.has_route_to(pair.b.block()),
                "A's kernel has lost its route"
            );
            assert!(
                theirs.has_route_to(pair.a.block()),
                "B's kernel has lost its route"
            );
            let routes = pair.b.routes_to(pair.a.block()).await;
            assert!(!routes.is_empty(), "the neighbour has lost the route");
            let protocols = pair.b.protocols().await;
            bridged += usize::from(!protocols.iter().any(Protocol::is_established));
            looks += 1;
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let over = async {
        happens().await;
        pair.await_sessions().await;
        await_that("the recovery is over", async || {
            let status = pair.a.socket().status().await;
            status.is_ok_and(|status| status.recovery.is_none())
        })
        .await;
        // It hears of the end a moment later, and bridges no other restart before.
        await_that("the neighbour knows that it is over", async || {
            let asked = pair.b.socket().protocols_all().await;
            let protocols = asked.unwrap_or_default();
            let sessions = protocols.iter().filter_map(|one| one.session.as_ref());
            sessions
                .filter(|session| !session.is_neighbor_restarting)
                .count()
                == 2
        })
        .await;
    };
    tokio::select! {
        () = watched => {}
        () = over => {}
    }
    assert!(bridged > 0, "the session did not break");
    format!("{looks} looks, {bridged} of them without a session")
}

#[test]
fn a_killed_bird_is_started_again_and_its_neighbour_keeps_its_routes() {
    with_daemon(async |pair, mut held| {
        // Not one time only.
        for round in 0..3 {
            let before = held.running.borrow().clone().unwrap();
            let seen = loses_no_route(pair, async || {
                kill(before.process, Signal::KILL);
                let after = held.other_than(before.process).await;
                assert!(!after.was_taken_over);
                assert_eq!(after.starts, round + 1);
            })
            .await;
            println!("{seen}");
        }
    });
}

#[test]
fn an_ordered_restart_keeps_the_routes_of_the_neighbour() {
    with_daemon(async |pair, mut held| {
        let before = held.running.borrow().clone().unwrap();
        let seen = loses_no_route(pair, async || {
            held.order(Order::Restart).await;
            held.other_than(before.process).await;
        })
        .await;
        println!("{seen}");
    });
}

/// BIRD waits for a peer that does not come before it tells anything, and peers bridge one restart at a time.
#[test]
fn an_ordered_restart_waits_until_the_one_before_is_over() {
    let pair = Pair::new();
    let texts = pair.texts_of_a(|conf| {
        conf.recovery = 4;
        conf.more =
            "protocol bgp Mesh_172_20_0_99 { local as 64512; neighbor 172.20.0.99 as 64512; \
                     graceful restart; ipv4 { import all; export all; }; }\n"
                .to_owned();
    });
    std::fs::write(pair.a.config(), &texts[CONF]).unwrap();
    with_daemon_of(&pair, async |pair, mut held| {
        let before = held.running.borrow().clone().unwrap();
        let seen = loses_no_route(pair, async || {
            held.order(Order::Restart).await;
            let first = held.other_than(before.process).await;
            pair.await_sessions().await;
            let status = pair.a.socket().status().await.unwrap();
            assert!(status.recovery.is_some());
            held.order(Order::Restart).await;
            held.other_than(first.process).await;
        })
        .await;
        println!("{seen}");
    });
}

/// One that waits for a peer that is down tells nobody of anything.
#[test]
fn only_a_bird_with_another_one_before_it_waits_for_its_peers() {
    let pair = Pair::new();
    let run = || {
        block_on(async {
            let recovers = async || {
                let status = pair.a.socket().status().await.unwrap();
                status.recovery.is_some()
            };
            let mut held = Held::run(options(&pair.a));
            let first = held.other_than(0).await;
            assert!(!recovers().await, "nothing was there before");
            kill(first.process, Signal::KILL);
            let second = held.other_than(first.process).await;
            assert!(recovers().await, "peers may have the routes of the first");

            held.task.abort();
            kill(second.process, Signal::KILL);
            let third = Held::run(options(&pair.a)).other_than(second.process).await;
            assert!(!third.was_taken_over && recovers().await);
        });
    };
    pair.a.namespace().run(run).unwrap();
}

#[test]
fn a_bird_that_goes_down_withdraws_its_routes_at_once() {
    with_daemon(async |pair, held| {
        let start = Instant::now();
        held.order(Order::Down).await;
        await_that("the route is withdrawn", async || {
            !pair.b.has_route_to(pair.a.block()).await
        })
        .await;
        let took = start.elapsed();
        println!("withdrawn after {} ms", took.as_millis());
        // The neighbour would keep it for 120 s if BIRD were killed, and notice silence after 240 s.
        assert!(took < Duration::from_secs(20));
        held.task.await.unwrap().unwrap();
        assert_eq!(pair.a.birds(), Vec::<u32>::new());
    });
}

#[test]
fn a_bird_that_does_not_answer_is_replaced() {
    with_daemon(async |pair, mut held| {
        let before = held.running.borrow().clone().unwrap();
        kill(before.process, Signal::STOP);
        held.other_than(before.process).await;
        assert!(!pair.a.birds().contains(&before.process));
        pair.await_sessions().await;
    });
}

#[test]
fn a_bird_is_left_running_and_taken_over_with_its_log() {
    let said = Said::default();
    let writer = said.clone();
    with_daemon(async |pair, held| {
        let before = held.running.borrow().clone().unwrap();
        held.task.abort();
        let _ = held.task.await;
        assert_eq!(pair.a.birds(), [before.process]);

        let subscriber = tracing_subscriber::fmt()
            .json()
            .with_writer(move || writer.clone())
            .finish();
        let _guard = tracing::subscriber::set_default(subscriber);
        let mut next = Held::run(options(&pair.a));
        let taken = next.other_than(0).await;
        assert_eq!(
            (taken.process, taken.was_taken_over),
            (before.process, true)
        );

        let [session, _] = Site::sessions(&pair.b);
        let stopped = pair.b.socket();
        stopped.down().await.unwrap();
        await_that("the log tells of it, with the peer", async || {
            let lines = said.lines();
            lines.iter().any(|line| {
                line.contains(&format!("\"peer\":\"{session}\""))
                    && line.contains("Received: Administrative shutdown")
            })
        })
        .await;

        kill(taken.process, Signal::KILL);
        let started = next.other_than(taken.process).await;
        assert!(!started.was_taken_over);
    });
}

#[test]
fn the_bird_of_another_is_left_alone() {
    let pair = Pair::new();
    pair.a.start();
    block_on(async {
        await_that("BIRD runs", async || pair.a.socket().status().await.is_ok()).await;
        let mut options = options(&pair.a);
        options.config = pair.a.folder().join("other.conf");
        let refused = Held::run(options).task.await.unwrap().unwrap_err();
        assert!(matches!(refused, Error::Foreign { .. }), "{refused}");
        assert!(refused.to_string().contains("bird.conf, not "), "{refused}");
        pair.a.socket().status().await.unwrap();
    });
}

#[test]
fn a_bird_that_cannot_start_is_tried_again_and_says_why() {
    let said = Said::default();
    let writer = said.clone();
    let pair = Pair::new();
    let good = std::fs::read_to_string(pair.a.config()).unwrap();
    std::fs::write(pair.a.config(), "log stderr all;\nnonsense\n").unwrap();
    let run = || {
        block_on(async {
            let subscriber = tracing_subscriber::fmt()
                .json()
                .with_writer(move || writer.clone())
                .finish();
            let _guard = tracing::subscriber::set_default(subscriber);
            let mut held = Held::run(options(&pair.a));
            await_that("it says why", async || {
                let lines = said.lines();
                let said_why = |line: &String| {
                    line.contains("BIRD cannot be started")
                        && line.contains("bird.conf:2:1 syntax error")
                };
                lines.iter().any(said_why)
            })
            .await;
            std::fs::write(pair.a.config(), good).unwrap();
            held.other_than(0).await;
        });
    };
    pair.a.namespace().run(run).unwrap();
}

/// What is logged.
#[derive(Debug, Clone, Default)]
struct Said(Arc<Mutex<Vec<u8>>>);

impl Said {
    fn lines(&self) -> Vec<String> {
        let bytes = self.0.lock().unwrap();
        let text = String::from_utf8_lossy(&bytes);
        text.lines().map(str::to_owned).collect()
    }
}

impl Write for Said {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
