//! Clients in other languages follow objects that change all the time: each change is told once, and in order.

mod history;
mod rust;

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{env, thread};

use self::history::{END, Event, History, Seen};
use crate::up::objects::{Step, Written};
use crate::up::server::Up;

const WRITERS: u64 = 4;

/// How many objects a writer has.
const OBJECTS: u64 = 20;

/// How long clients may take to catch up at the end.
const PATIENCE: Duration = Duration::from_mins(1);

const PYTHON: &str = include_str!("churn/follow.py");

#[test]
fn every_change_is_told_once_and_in_order() {
    churn(Duration::from_secs(10));
}

#[test]
#[ignore = "takes ten minutes, or TORTIE_CHURN_SECONDS"]
fn churn_for_ten_minutes() {
    let seconds = env::var("TORTIE_CHURN_SECONDS").ok();
    let seconds = seconds.map_or(600, |text| text.parse().unwrap());
    churn(Duration::from_secs(seconds));
}

fn churn(time: Duration) {
    let up = Up::api_server();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let client = runtime.block_on(up.client());
    let is_over = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..WRITERS)
        .map(|number| runtime.spawn(write(client.clone(), number, Arc::clone(&is_over))))
        .collect();
    // Lists are read while everything changes.
    thread::sleep(Duration::from_millis(500));
    let watchers = Written::ALL.map(|of| {
        let events = runtime.spawn(rust::follow(of.api(&client), time));
        (of, events, runtime.spawn(rust::reflect(of.api(&client))))
    });
    let pythons = Written::ALL.map(|of| (of, Python::start(&up, of)));
    let end = Instant::now() + time;
    while Instant::now() < end {
        assert!(
            !watchers.iter().any(|(_, task, _)| task.is_finished()),
            "a watch ended"
        );
        thread::sleep(Duration::from_millis(100));
    }
    is_over.store(true, Ordering::Release);
    let mut history = History::default();
    for writer in writers {
        history.join(runtime.block_on(writer).unwrap());
    }
    runtime.block_on(async {
        for of in Written::ALL {
            let revision = Step::Create(0)
                .take(&of.api(&client), of, END)
                .await
                .unwrap();
            history.add(of, END, revision);
        }
    });
    let told = |what: &str, of: Written, seen: &Seen| {
        let count = seen.check(of, &history);
        assert!(count > 100, "{what} saw only {count} changes of {of:?}");
    };
    for (of, events, reflected) in watchers {
        let both = async { (events.await.unwrap(), reflected.await.unwrap()) };
        let caught_up = runtime.block_on(async { tokio::time::timeout(PATIENCE, both).await });
        let (seen, kept) = caught_up.expect("the clients have caught up");
        told("kube-rs", of, &seen);
        let there = runtime.block_on(rust::list(of.api(&client)));
        assert_eq!(
            kept, there,
            "what the reflector of {of:?} keeps, and what is there"
        );
    }
    for (of, python) in pythons {
        told("Python", of, &python.end());
    }
    assert!(!up.log().contains("panicked"), "{}", up.log());
}

/// Creates, changes and deletes objects until it is over, and tells what was answered.
async fn write(client: kube::Client, number: u64, is_over: Arc<AtomicBool>) -> History {
    let mut history = History::default();
    let mut count = 0;
    while !is_over.load(Ordering::Acquire) {
        for of in Written::ALL {
            let api = of.api(&client);
            let name = format!("object-{number}-{}", count % OBJECTS);
            // Each is created, changed twice, and deleted, now and then all at once.
            let step = match (count / OBJECTS) % 4 {
                0 => Step::Create(count),
                1 | 2 => Step::Update(count),
                _ => Step::Delete,
            };
            let answered = step.take(&api, of, &name).await;
            history.add(
                of,
                &name,
                answered.unwrap_or_else(|error| panic!("{step:?}: {error}")),
            );
        }
        count += 1;
    }
    history
}

/// Python's client, as a process.
struct Python {
    reader: thread::JoinHandle<Seen>,
}

impl Python {
    fn start(up: &Up, of: Written) -> Self {
        let mut command = Command::new("/usr/bin/python3");
        command
            .args(["-c", PYTHON])
            .arg(up.file("kubeconfig"))
            .arg(format!("{of:?}"))
            .arg(END)
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let mut child = up.spawn(&mut command);
        let stdout = child.stdout.take().unwrap();
        let reader = thread::spawn(move || {
            let mut seen = Seen::default();
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let words: Vec<&str> = line.split(' ').collect();
                let [what, name, revision] = words[..] else {
                    panic!("{line}");
                };
                let revision = revision.parse().unwrap();
                match what {
                    "LISTED" => seen.listed = Some(revision),
                    "ITEM" => drop(seen.items.insert(name.to_owned(), revision)),
                    "ADDED" | "MODIFIED" => {
                        seen.events.push((Event::Put, name.to_owned(), revision));
                    }
                    "DELETED" => seen.events.push((Event::Delete, name.to_owned(), revision)),
                    other => panic!("{other}"),
                }
            }
            assert!(child.wait().unwrap().success(), "Python's client failed");
            seen
        });
        Self { reader }
    }

    fn end(self) -> Seen {
        let end = Instant::now() + PATIENCE;
        while !self.reader.is_finished() {
            assert!(Instant::now() < end, "Python's client has not caught up");
            thread::sleep(Duration::from_millis(20));
        }
        self.reader.join().unwrap()
    }
}
