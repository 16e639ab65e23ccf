//! A test process that is killed leaves neither servers nor folders behind.

use std::{
    env,
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use tortie_testkit::KubeApiServer;

/// Set in the process that is to be killed: this same test, run once more.
const VICTIM: &str = "TORTIE_TESTKIT_VICTIM";

const MARK: &str = "victim: ";

#[test]
fn a_killed_process_leaves_nothing_behind() {
    if env::var_os(VICTIM).is_some() {
        be_killed();
    }
    let mut victim = Command::new(env::current_exe().unwrap())
        .args([
            "--exact",
            "crash::a_killed_process_leaves_nothing_behind",
            "--nocapture",
        ])
        .env(VICTIM, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let stdout = BufReader::new(victim.stdout.take().unwrap());
    // The line may begin with what the test harness has to say.
    let line = stdout
        .lines()
        .find_map(|line| Some(line.unwrap().split_once(MARK)?.1.to_owned()));
    let line = line.expect("the victim ended before it had servers");
    let paths: Vec<_> = line.split(' ').map(Path::new).collect();
    assert_eq!(paths.len(), 4);
    assert!(paths.iter().all(|path| path.exists()), "{paths:?}");

    victim.kill().unwrap();
    victim.wait().unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    while paths.iter().any(|path| path.exists()) {
        assert!(Instant::now() < deadline, "still there: {paths:?}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Starts servers, says what they leave in the system, and waits.
fn be_killed() -> ! {
    let server = KubeApiServer::start().expect("the servers start");
    let etcd = server.etcd();
    let mut stdout = std::io::stdout();
    writeln!(
        stdout,
        "{MARK}/proc/{} {} /proc/{} {}",
        server.pid(),
        server.folder().display(),
        etcd.pid(),
        etcd.folder().display(),
    )
    .and_then(|()| stdout.flush())
    .expect("the parent reads it");
    // Its input ends only with the parent, if that fails before the kill.
    let _ = std::io::stdin().lock().lines().count();
    panic!("the parent is gone");
}
