//! HTTP/1.1 over the server's local socket, with as little work of the client's own as possible.

use std::path::Path;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;

pub(crate) struct Connection {
    stream: BufReader<UnixStream>,
}

impl Connection {
    pub(crate) async fn open(socket: &Path) -> Self {
        let stream = UnixStream::connect(socket).await.unwrap();
        Self {
            stream: BufReader::with_capacity(64 << 10, stream),
        }
    }

    /// Sends a request and reads the answer, which must be a success.
    pub(crate) async fn send(&mut self, method: &str, path: &str, body: &Value) {
        let body = body.to_string();
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
        );
        let request = [head.as_bytes(), body.as_bytes()].concat();
        self.stream.get_mut().write_all(&request).await.unwrap();
        let (code, length) = self.head().await;
        let mut answer = vec![0; length];
        self.stream.read_exact(&mut answer).await.unwrap();
        let text = String::from_utf8_lossy(&answer);
        assert!((200..300).contains(&code), "{method} {path}: {code} {text}");
    }

    /// Begins to watch what comes after now.
    pub(crate) async fn watch(&mut self, path: &str) {
        let request =
            format!("GET {path}?watch=true&sendInitialEvents=false HTTP/1.1\r\nHost: x\r\n\r\n");
        self.stream
            .get_mut()
            .write_all(request.as_bytes())
            .await
            .unwrap();
        let (code, _) = self.head().await;
        assert_eq!(code, 200, "{path}");
    }

    /// The next line of a watch; none at its end.
    pub(crate) async fn line<'a>(&mut self, line: &'a mut Vec<u8>) -> Option<&'a [u8]> {
        line.clear();
        match self.stream.read_until(b'\n', line).await {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(line),
        }
    }

    /// The code of an answer, and the length of its body.
    async fn head(&mut self) -> (u16, usize) {
        let (mut code, mut length) = (0, 0);
        let mut line = String::new();
        loop {
            line.clear();
            let read = self.stream.read_line(&mut line).await.unwrap();
            assert!(read > 0, "the server closed the connection");
            let text = line.trim_end();
            if text.is_empty() {
                return (code, length);
            }
            if let Some(rest) = text.strip_prefix("HTTP/1.1 ") {
                code = rest[..3].parse().unwrap();
            }
            let lower = text.to_ascii_lowercase();
            if let Some(value) = lower.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
        }
    }
}
