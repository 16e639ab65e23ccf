//! Requests byte by byte, over the socket for processes of this machine.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use crate::up::server::Up;

pub(super) const MAPS: &str = "/api/v1/namespaces/default/configmaps";
pub(super) const POLICIES: &str = "/apis/projectcalico.org/v3/globalnetworkpolicies";

/// How long an answer may take. Mostly it takes milliseconds.
const PATIENCE: Duration = Duration::from_mins(1);

pub(super) fn config_map(name: &str) -> Value {
    json!({"metadata": {"name": name}, "data": {"key": "value"}})
}

pub(super) fn policy(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"selector": "all()", "order": 1}})
}

/// Where requests are sent to.
pub(super) struct Http {
    socket: PathBuf,
}

/// An answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) code: u16,
    pub(super) body: String,
}

impl Http {
    pub(super) fn new(up: &Up) -> Self {
        Self {
            socket: up.file("api.sock"),
        }
    }

    pub(super) fn connect(&self) -> UnixStream {
        let stream = UnixStream::connect(&self.socket).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    pub(super) fn get(&self, path: &str) -> Answer {
        self.send("GET", path, "", b"")
    }

    pub(super) fn json(&self, method: &str, path: &str, body: &Value) -> Answer {
        self.send(
            method,
            path,
            "application/json",
            body.to_string().as_bytes(),
        )
    }

    /// Sends a request with a body of a type.
    pub(super) fn send(&self, method: &str, path: &str, media_type: &str, body: &[u8]) -> Answer {
        let kind = match media_type {
            "" => String::new(),
            media_type => format!("Content-Type: {media_type}\r\n"),
        };
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{kind}Content-Length: {}\r\n\r\n",
            body.len()
        );
        self.raw(&[head.as_bytes(), body].concat())
    }

    /// Sends bytes and reads until the server closes the connection.
    pub(super) fn raw(&self, bytes: &[u8]) -> Answer {
        let mut stream = self.connect();
        // The server may answer and leave before it has read everything.
        let _ = stream.write_all(bytes);
        read_answer(&mut stream)
    }
}

/// The answer on a connection that the server then closes.
pub(super) fn read_answer(stream: &mut UnixStream) -> Answer {
    let mut bytes = Vec::new();
    // What came before a connection was cut off counts.
    let _ = stream.read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let code = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    Answer {
        code: code.unwrap_or(0),
        body: body.to_owned(),
    }
}

impl Answer {
    #[track_caller]
    pub(super) fn value(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    /// A refusal with this code, as a Status.
    #[track_caller]
    pub(super) fn assert_refused(&self, codes: &[u16], what: &str) {
        let shown: String = self.body.chars().take(500).collect();
        assert!(codes.contains(&self.code), "{what}: {} {shown}", self.code);
        let status = self.value();
        assert_eq!(status["kind"], "Status", "{what}: {shown}");
        assert_eq!(status["code"], self.code, "{what}: {shown}");
        let message = status["message"].as_str().unwrap_or_default();
        assert!(!message.is_empty(), "{what}: {shown}");
        assert!(
            message.len() < 64 << 10,
            "{what}: a message of {} bytes",
            message.len()
        );
    }
}
