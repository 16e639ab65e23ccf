//! Clients that hold on to connections.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::Target;
use super::http::{MAPS, read_answer};

/// How many idle connections there are.
const IDLE: usize = 1_000;

/// So many files may be open in this process.
fn allow_files(count: u64) {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < count) {
        let current = Some(count.min(limit.maximum.unwrap_or(count)));
        setrlimit(Resource::Nofile, Rlimit { current, ..limit }).unwrap();
    }
}

fn connect(target: &Target) -> TcpStream {
    let url = target.up.url();
    TcpStream::connect(url.trim_start_matches("https://")).unwrap()
}

/// How long until the server ends a connection.
fn await_end(stream: &mut impl std::io::Read, start: Instant) -> Duration {
    let mut bytes = [0; 4096];
    while matches!(stream.read(&mut bytes), Ok(1..)) {}
    start.elapsed()
}

#[test]
fn headers_that_are_too_large_are_refused() {
    let target = Target::new();
    let large = "x".repeat(200_000);
    let many = format!("X-Many: {}\r\n", "y".repeat(100)).repeat(2_000);
    for headers in [format!("X-Large: {large}\r\n"), many] {
        let request =
            format!("GET {MAPS} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}\r\n");
        assert_eq!(target.http.raw(request.as_bytes()).code, 431);
    }
    let request = format!("GET {MAPS}?{large} HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(matches!(
        target.http.raw(request.as_bytes()).code,
        414 | 431
    ));
    for garbage in [
        &b"\0\0\0\0\r\n\r\n"[..],
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\ngarbage garbage garbage",
    ] {
        let code = {
            let mut stream = target.http.connect();
            stream
                .set_read_timeout(Some(Duration::from_millis(500)))
                .unwrap();
            let _ = stream.write_all(garbage);
            let _ = stream.shutdown(std::net::Shutdown::Write);
            read_answer(&mut stream).code
        };
        assert!(matches!(code, 0 | 400 | 505), "{garbage:?}: {code}");
    }
    let smuggled = format!(
        "POST {MAPS} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nDELETE {MAPS}/one HTTP/1.1\r\nHost: x\r\n\r\n"
    );
    assert_eq!(target.http.raw(smuggled.as_bytes()).code / 100, 4);
    target.assert_unharmed();
}

#[test]
fn idle_connections_do_not_stop_others_and_half_handshakes_are_cut_off() {
    let target = Target::new();
    allow_files(4 * IDLE as u64);
    let start = Instant::now();
    let mut silent: Vec<TcpStream> = (0..IDLE).map(|_| connect(&target)).collect();
    let mut local: Vec<UnixStream> = (0..IDLE).map(|_| target.http.connect()).collect();
    for stream in &mut silent[..IDLE / 2] {
        // The beginning of a handshake.
        stream.write_all(b"\x16\x03\x01").unwrap();
    }
    let asked = Instant::now();
    assert_eq!(target.http.get(MAPS).code, 200);
    let names = target.up.kubectl(&["get", "cm", "--output=name"]);
    assert_eq!(names, "configmap/one\n");
    assert!(
        asked.elapsed() < Duration::from_secs(5),
        "{:?}",
        asked.elapsed()
    );
    let mut last = silent.pop().unwrap();
    last.set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let lasted = await_end(&mut last, start);
    assert!((8..15).contains(&lasted.as_secs()), "{lasted:?}");
    let mut last = local.pop().unwrap();
    last.set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let lasted = await_end(&mut last, start);
    assert!((8..15).contains(&lasted.as_secs()), "{lasted:?}");
    target.assert_unharmed();
}

#[test]
#[ignore = "takes more than a minute: that is how patient the server is"]
fn half_requests_are_cut_off() {
    let target = Target::new();
    let begin = |bytes: &[u8]| {
        let mut stream = target.http.connect();
        stream
            .set_read_timeout(Some(Duration::from_secs(90)))
            .unwrap();
        stream.write_all(bytes).unwrap();
        stream
    };
    let start = Instant::now();
    // Keys are agreed on, and then nothing is asked.
    let address = target.up.url().trim_start_matches("https://").to_owned();
    let mut openssl = Command::new("openssl");
    openssl
        .args([
            "s_client", "-quiet", "-alpn", "http/1.1", "-connect", &address,
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut silent = target.up.spawn(&mut openssl);
    let _stdin = silent.stdin.take();
    let mut half_headers = begin(format!("GET {MAPS} HTTP/1.1\r\nHost: x\r\nX-").as_bytes());
    let mut half_body = begin(
        format!("POST {MAPS} HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{{").as_bytes(),
    );
    let lasted = await_end(&mut half_headers, start);
    assert!((50..75).contains(&lasted.as_secs()), "{lasted:?}");
    assert!(silent.wait().unwrap().code().is_some());
    let lasted = start.elapsed();
    assert!((50..75).contains(&lasted.as_secs()), "{lasted:?}");
    let mut answer = [0; 12];
    half_body.read_exact(&mut answer).unwrap();
    assert!(
        answer.starts_with(b"HTTP/1.1 5") || answer.starts_with(b"HTTP/1.1 4"),
        "{answer:?}"
    );
    let lasted = await_end(&mut half_body, start);
    assert!((50..140).contains(&lasted.as_secs()), "{lasted:?}");
    target.assert_unharmed();
}
