//! Clients that hold on to connections.

use std::io::{ErrorKind, Read, Write as _};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::Target;
use super::http::{MAPS, read_answer};

/// How many idle connections there are.
const IDLE: usize = 1_000;

/// How often they are opened anew, on a machine so busy that they are cut off before anything is answered.
const ATTEMPTS: usize = 5;

/// How long to wait for the server to end a connection. It waits for 10 seconds, or for a minute where it knows the client.
const PATIENCE: Duration = Duration::from_mins(4);

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

/// Connections that ask nothing: half of those over TCP have begun a handshake.
struct Idle {
    tcp: Vec<TcpStream>,
    local: Vec<UnixStream>,
}

impl Idle {
    fn new(target: &Target) -> Self {
        let mut tcp: Vec<TcpStream> = (0..IDLE).map(|_| connect(target)).collect();
        let local = (0..IDLE).map(|_| target.http.connect()).collect();
        for stream in &mut tcp[..IDLE / 2] {
            stream.write_all(b"\x16\x03\x01").unwrap();
        }
        Self { tcp, local }
    }

    /// Whether the server has ended none of them.
    fn are_open(&mut self) -> bool {
        let tcp = self.tcp.iter_mut().all(|stream| {
            stream.set_nonblocking(true).unwrap();
            let is_open = has_nothing_to_read(stream);
            stream.set_nonblocking(false).unwrap();
            is_open
        });
        let local = self.local.iter_mut().all(|stream| {
            stream.set_nonblocking(true).unwrap();
            let is_open = has_nothing_to_read(stream);
            stream.set_nonblocking(false).unwrap();
            is_open
        });
        tcp && local
    }
}

fn has_nothing_to_read(stream: &mut impl Read) -> bool {
    matches!(stream.read(&mut [0]), Err(error) if error.kind() == ErrorKind::WouldBlock)
}

/// Reads until the server ends a connection, which it has to.
#[track_caller]
fn await_end(stream: &mut impl Read) {
    let mut bytes = [0; 4096];
    let end = loop {
        match stream.read(&mut bytes) {
            Ok(1..) => {}
            end => break end,
        }
    };
    match end {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
        Err(error) => panic!("the server has not ended it: {error}"),
    }
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
    let answered_beside = || {
        let mut idle = Idle::new(&target);
        assert_eq!(target.http.get(MAPS).code, 200);
        let names = target.up.kubectl(&["get", "cm", "--output=name"]);
        assert_eq!(names, "configmap/one\n");
        idle.are_open().then_some(idle)
    };
    let idle = (0..ATTEMPTS).find_map(|_| answered_beside());
    let Idle { mut tcp, mut local } =
        idle.expect("answers while the idle connections are still open");
    for number in [0, IDLE - 1] {
        let stream = &mut tcp[number];
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        await_end(stream);
    }
    let stream = &mut local[IDLE - 1];
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    await_end(stream);
    target.assert_unharmed();
}

#[test]
#[ignore = "takes more than a minute: that is how patient the server is"]
fn half_requests_are_cut_off() {
    let target = Target::new();
    let begin = |bytes: &[u8]| {
        let mut stream = target.http.connect();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(bytes).unwrap();
        stream
    };
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
    await_end(&mut half_headers);
    assert!(silent.wait().unwrap().code().is_some());
    let mut answer = [0; 12];
    half_body.read_exact(&mut answer).unwrap();
    assert!(
        answer.starts_with(b"HTTP/1.1 5") || answer.starts_with(b"HTTP/1.1 4"),
        "{answer:?}"
    );
    await_end(&mut half_body);
    target.assert_unharmed();
}
