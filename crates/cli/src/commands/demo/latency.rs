//! How long a change takes from the datastore to the packets.
//!
//! While the change is made, a thread in a pod begins a connection again and again, each from a new port, so that none
//! is let through because an earlier one was.

use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};
use tokio::time::sleep;

use super::cast::Protocol;
use super::pod::{Pod, TICK};
use super::probe::any_port;
use super::script::Change;

/// The time between two datagrams.
const INTERVAL: Duration = Duration::from_micros(200);

/// How long a TCP connection may take: only packets of the kernel are waited for, and the next attempt follows.
const HANDSHAKE: Duration = Duration::from_millis(1);

/// How long things are watched before the change.
const BEFORE: Duration = Duration::from_millis(10);

/// If nothing arrives for so long, nothing will.
const SILENCE: Duration = Duration::from_millis(100);

/// A change that takes longer has failed.
const LONGEST: Duration = Duration::from_secs(10);

/// When each attempt was made, or nothing more is to be attempted.
#[derive(Default)]
struct Attempts {
    times: Mutex<Vec<Instant>>,
    is_over: AtomicBool,
}

/// Makes a change, and tells how long after its begin the first packet was sent that fared otherwise than those before.
pub(super) async fn measure(
    pods: &[Pod],
    change: &Change,
    work: impl Future<Output = Result<()>>,
) -> Result<Duration> {
    let cell = &change.shown_by;
    let (from, to) = (&pods[cell.from], &pods[cell.to]);
    let destination = SocketAddr::new(cell.destination().address(cell.version), cell.port());
    let attempts = Arc::new(Attempts::default());
    lock(&to.ticks).clear();
    let thread = start(from, cell.protocol, destination, &attempts).await?;
    sleep(BEFORE).await;
    let start = Instant::now();
    let made = work.await;
    let seen = match &made {
        Ok(()) => await_change(&attempts, &to.ticks, change).await,
        Err(_) => false,
    };
    attempts.is_over.store(true, Ordering::Release);
    let connected = thread.join();
    made?;
    let connected = connected.map_err(|_| anyhow!("the thread that probes panicked"))?;
    if !seen && connected.is_none() {
        bail!(
            "{} changes nothing after {} s",
            change.file,
            LONGEST.as_secs()
        );
    }
    let shown = match cell.protocol {
        Protocol::Tcp => connected,
        Protocol::Udp => {
            let ticks = lock(&to.ticks);
            let times = lock(&attempts.times);
            let first_number = if change.opens {
                ticks.iter().min().copied()
            } else {
                ticks
                    .iter()
                    .max()
                    .map_or(Some(0), |last| last.checked_add(1))
            };
            let number = first_number.and_then(|number| usize::try_from(number).ok());
            number.and_then(|number| times.get(number).copied())
        }
    };
    let shown = shown.with_context(|| format!("no packet shows {}", change.file))?;
    shown
        .checked_duration_since(start)
        .with_context(|| format!("{} was in force before it was applied", change.file))
}

/// Waits until datagrams show the change, or for a connection. Tells whether datagrams did.
async fn await_change(attempts: &Attempts, ticks: &Mutex<Vec<u32>>, change: &Change) -> bool {
    let end = Instant::now() + LONGEST;
    let mut count = 0;
    let mut last_news = Instant::now();
    while Instant::now() < end && !attempts.is_over.load(Ordering::Acquire) {
        sleep(Duration::from_millis(2)).await;
        let now = lock(ticks).len();
        if now != count {
            (count, last_news) = (now, Instant::now());
        }
        let is_shown = if change.opens {
            count > 0
        } else {
            last_news.elapsed() > SILENCE
        };
        if is_shown && change.shown_by.protocol == Protocol::Udp {
            return true;
        }
    }
    false
}

/// Starts the thread in a pod. For TCP it ends with the first connection, and tells when that was begun.
async fn start(
    pod: &Pod,
    protocol: Protocol,
    destination: SocketAddr,
    attempts: &Arc<Attempts>,
) -> Result<JoinHandle<Option<Instant>>> {
    let attempts = Arc::clone(attempts);
    let body = move || match protocol {
        Protocol::Tcp => connect(destination, &attempts),
        Protocol::Udp => {
            tick(destination, &attempts);
            None
        }
    };
    let name = "probe".to_owned();
    let thread = pod.run(async move { thread::Builder::new().name(name).spawn(body) });
    Ok(thread.await??)
}

fn tick(destination: SocketAddr, attempts: &Attempts) {
    for number in 0_u32.. {
        if attempts.is_over.load(Ordering::Acquire) {
            return;
        }
        lock(&attempts.times).push(Instant::now());
        let datagram = [&TICK[..], &number.to_ne_bytes()].concat();
        if let Ok(socket) = UdpSocket::bind(any_port(destination)) {
            // What cannot be sent does not arrive either.
            let _ = socket.send_to(&datagram, destination);
        }
        thread::sleep(INTERVAL);
    }
}

fn connect(destination: SocketAddr, attempts: &Attempts) -> Option<Instant> {
    while !attempts.is_over.load(Ordering::Acquire) {
        let begin = Instant::now();
        if TcpStream::connect_timeout(&destination, HANDSHAKE).is_ok() {
            attempts.is_over.store(true, Ordering::Release);
            return Some(begin);
        }
    }
    None
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
