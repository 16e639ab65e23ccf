//! Leader election between processes that are killed and stopped: never two at a time.

use std::collections::BTreeMap;
use std::env;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Api, DeleteParams};
use tortie_operator::{Error, LeaderElection, Leadership, Manager};
use tortie_testkit::KubeApiServer;

use crate::kubernetes::support::{client, client_of, eventually, namespace};

const LEASE: Duration = Duration::from_secs(2);
const RENEW_DEADLINE: Duration = Duration::from_millis(1400);
const RETRY: Duration = Duration::from_millis(300);

/// How long to wait for what should take seconds.
const PATIENCE: Duration = Duration::from_mins(1);

fn election(namespace: &str, identity: &str) -> LeaderElection {
    LeaderElection {
        identity: identity.to_owned(),
        lease: LEASE,
        renew_deadline: RENEW_DEADLINE,
        retry: RETRY,
        ..LeaderElection::new(namespace, "leader")
    }
}

/// Nanoseconds on a clock that all processes of this machine share.
fn clock() -> u128 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let whole = u128::try_from(time.tv_sec).unwrap() * 1_000_000_000;
    whole + u128::try_from(time.tv_nsec).unwrap()
}

/// Writes a line every few milliseconds, without looking at leadership itself: that is the manager's business.
async fn write_for_ever(file: PathBuf, identity: String) -> Result<(), tortie_operator::BoxError> {
    let mut file = OpenOptions::new().append(true).create(true).open(file)?;
    loop {
        let begin = clock();
        let end = clock();
        file.write_all(format!("{identity} {begin} {end}\n").as_bytes())?;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// The process that is killed and stopped. Ends with 3 when leadership was lost.
#[tokio::test]
#[ignore = "is run by the test below, in processes of its own"]
#[expect(clippy::exit, reason = "the parent looks at the code")]
async fn candidate() {
    let variable = |name: &str| env::var(name).unwrap();
    let client = client_of(Path::new(&variable("CANDIDATE_KUBECONFIG"))).await;
    let identity = variable("CANDIDATE_IDENTITY");
    let file = PathBuf::from(variable("CANDIDATE_FILE"));
    let manager = Manager::builder(client)
        .leader_election(election(&variable("CANDIDATE_NAMESPACE"), &identity))
        .build();
    manager.run_as_leader("writer", move |_| write_for_ever(file, identity));
    match manager.run_until_signal().await {
        Ok(()) => {}
        Err(Error::LeadershipLost) => std::process::exit(3),
        Err(error) => panic!("{error}"),
    }
}

struct Candidates {
    namespace: String,
    file: PathBuf,
    running: BTreeMap<String, Child>,
    started: usize,
}

impl Candidates {
    fn start(&mut self) {
        self.started += 1;
        let identity = format!("candidate-{}", self.started);
        let child = Command::new(env::current_exe().unwrap())
            .args([
                "--exact",
                "kubernetes::leader::candidate",
                "--ignored",
                "--nocapture",
            ])
            .env("CANDIDATE_KUBECONFIG", KubeApiServer::shared().kubeconfig())
            .env("CANDIDATE_IDENTITY", &identity)
            .env("CANDIDATE_NAMESPACE", &self.namespace)
            .env("CANDIDATE_FILE", &self.file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        self.running.insert(identity, child);
    }

    /// Starts anew whoever lost the lease because the machine was too busy.
    fn refill(&mut self) {
        self.running
            .retain(|_, child| child.try_wait().unwrap().is_none());
        while self.running.len() < 2 {
            self.start();
        }
    }

    fn signal(&self, identity: &str, signal: &str) {
        let pid = self.running[identity].id().to_string();
        assert!(
            Command::new("kill")
                .args([signal, &pid])
                .status()
                .unwrap()
                .success()
        );
    }

    /// Waits until a candidate has ended.
    async fn end_of(&mut self, identity: &str) -> ExitStatus {
        let child = self.running.get_mut(identity).unwrap();
        loop {
            if let Some(status) = child.try_wait().unwrap() {
                return status;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Who wrote last.
    fn leader(&self) -> Option<String> {
        let text = fs::read_to_string(&self.file).unwrap_or_default();
        let whole = &text[..text.rfind('\n')?];
        whole
            .lines()
            .next_back()?
            .split(' ')
            .next()
            .map(str::to_owned)
    }

    async fn another(&mut self, than: &str) -> (String, Duration) {
        let start = Instant::now();
        loop {
            if let Some(leader) = self.leader().filter(|leader| leader != than) {
                return (leader, start.elapsed());
            }
            assert!(start.elapsed() < PATIENCE, "nobody takes over from {than}");
            self.refill();
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

impl Drop for Candidates {
    fn drop(&mut self) {
        for child in self.running.values_mut() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[tokio::test]
async fn there_are_never_two_leaders_and_there_is_always_another() {
    let client = client(KubeApiServer::shared()).await;
    let folder = tempfile::tempdir().unwrap();
    let mut candidates = Candidates {
        namespace: namespace(&client, "leader-processes").await,
        file: folder.path().join("writes"),
        running: BTreeMap::new(),
        started: 0,
    };
    candidates.refill();
    let (mut leader, _) = candidates.another("").await;
    let mut takeovers = Vec::new();
    for _ in 0..20 {
        candidates.signal(&leader, "-KILL");
        let (next, took) = candidates.another(&leader).await;
        takeovers.push(took);
        leader = next;
        candidates.refill();
    }
    for _ in 0..4 {
        let stopped = leader.clone();
        candidates.signal(&stopped, "-STOP");
        let (next, took) = candidates.another(&stopped).await;
        takeovers.push(took);
        leader = next;
        candidates.signal(&stopped, "-CONT");
        let code = candidates.end_of(&stopped).await.code();
        assert_eq!(code, Some(3), "it sees that it leads no more");
        candidates.refill();
    }
    takeovers.sort();
    println!(
        "takeovers: {:?} to {:?}",
        takeovers[0],
        takeovers[takeovers.len() - 1]
    );

    // Who ends in order gives the lease back before.
    candidates.signal(&leader, "-TERM");
    candidates.end_of(&leader).await;
    let leases: Api<Lease> = Api::namespaced(client, &candidates.namespace);
    let spec = leases.get("leader").await.unwrap().spec.unwrap();
    assert_ne!(spec.holder_identity, Some(leader.clone()));
    let (_, took) = candidates.another(&leader).await;
    println!("takeover after a clean end: {took:?}");

    let text = fs::read_to_string(&candidates.file).unwrap();
    let whole = &text[..=text.rfind('\n').unwrap()];
    let mut writes: Vec<(u128, u128, &str)> = whole
        .lines()
        .map(|line| {
            let mut parts = line.split(' ');
            let who = parts.next().unwrap();
            let mut time = || parts.next().unwrap().parse().unwrap();
            (time(), time(), who)
        })
        .collect();
    writes.sort_unstable();
    let mut past = Vec::new();
    for pair in writes.windows(2) {
        let ((_, end, one), (begin, _, other)) = (pair[0], pair[1]);
        if one != other {
            assert!(begin > end, "{one} and {other} wrote at the same time");
            past.push(one);
            assert!(
                !past.contains(&other),
                "{other} wrote again after {one} had taken over"
            );
        }
    }
    assert!(past.len() >= 25, "{past:?}");
}

async fn leadership_of(
    manager: Manager,
) -> (Leadership, tokio::task::JoinHandle<Result<(), Error>>) {
    let (tell, told) = tokio::sync::oneshot::channel();
    manager.run_as_leader("tell", move |leadership| async move {
        let _ = tell.send(leadership);
        std::future::pending().await
    });
    let running = tokio::spawn(manager.run(std::future::pending()));
    (told.await.unwrap(), running)
}

#[tokio::test]
async fn a_leader_without_an_api_server_stops() {
    let cluster = KubeApiServer::start().unwrap();
    let client = client(&cluster).await;
    let manager = Manager::builder(client)
        .leader_election(election("default", "alone"))
        .build();
    let (leadership, running) = leadership_of(manager).await;
    tokio::time::sleep(2 * RETRY).await;
    assert!(leadership.is_held());
    cluster.kill().unwrap();
    // The release cannot succeed either, and is waited for a while.
    let ended = tokio::time::timeout(PATIENCE, running).await;
    let ended = ended.expect("it stops").unwrap();
    assert!(matches!(ended, Err(Error::LeadershipLost)), "{ended:?}");
    assert!(!leadership.is_held());
}

#[tokio::test]
async fn a_lease_that_is_taken_away_or_deleted_is_lost_and_has_the_fields_of_others() {
    let client = client(KubeApiServer::shared()).await;
    let ns = namespace(&client, "leader-fields").await;
    let leases: Api<Lease> = Api::namespaced(client.clone(), &ns);
    let manager = Manager::builder(client.clone())
        .leader_election(election(&ns, "first"))
        .build();
    let (leadership, running) = leadership_of(manager).await;
    let spec = leases.get("leader").await.unwrap().spec.unwrap();
    assert_eq!(spec.holder_identity.as_deref(), Some("first"));
    assert_eq!(
        (spec.lease_duration_seconds, spec.lease_transitions),
        (Some(2), Some(0))
    );
    assert!(spec.acquire_time.is_some() && spec.renew_time.is_some());
    let renewed = spec.renew_time.unwrap().0;
    tokio::time::sleep(3 * RETRY).await;
    let spec = leases.get("leader").await.unwrap().spec.unwrap();
    assert!(spec.renew_time.unwrap().0 > renewed);

    // A label that somebody sets is no reason to stop, and stays.
    let cluster = KubeApiServer::shared();
    let label = ["label", "lease/leader", "-n", &ns, "kept=yes"];
    cluster.kubectl(&label).unwrap().into_stdout().unwrap();
    tokio::time::sleep(3 * RETRY).await;
    assert!(leadership.is_held());
    let labels = leases.get("leader").await.unwrap().metadata.labels.unwrap();
    assert_eq!(labels.get("kept").map(String::as_str), Some("yes"));

    leases
        .delete("leader", &DeleteParams::default())
        .await
        .unwrap();
    assert!(matches!(running.await.unwrap(), Err(Error::LeadershipLost)));
    eventually(false, || leadership.is_held()).await;
}
