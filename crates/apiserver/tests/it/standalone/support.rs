//! The server, and a client that goes through its socket.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::oneshot;
use tortie_apiserver::access::TokenAccess;
use tortie_apiserver::http::{Api, Options};
use tortie_apiserver::server::{Listener, serve};
use tortie_apiserver::standalone::{self, Standalone};
use tortie_client::Client;
use tortie_serve::Limits;
use tortie_store::embedded::EmbeddedStore;

pub(crate) const TIERS: &str = "/apis/projectcalico.org/v3/tiers";

/// A server that stands alone, in this process.
pub(crate) struct Alone {
    folder: tempfile::TempDir,
    _stop: oneshot::Sender<()>,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Alone {
    pub(crate) async fn start() -> Self {
        Self::start_with(Options::default()).await
    }

    pub(crate) async fn start_with(options: Options) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(EmbeddedStore::open(folder.path().join("data")).unwrap());
        let client = Client::new(Arc::clone(&store) as _);
        client.ensure_initialized("v1", "test").await.unwrap();
        let Standalone { service, roles } = standalone::open(&store).await.unwrap();
        let access = Arc::new(TokenAccess::new("secret", roles));
        let api = Api::new(service, access, options);
        let socket = UnixListener::bind(folder.path().join("socket")).unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        tokio::spawn(async move {
            let listeners = vec![Listener::Socket(socket)];
            let stopped = async {
                let _ = stopped.await;
            };
            serve(api, listeners, &Limits::default(), stopped).await;
        });
        Self {
            folder,
            _stop: stop,
        }
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    /// Sends a request and reads the answer to its end.
    pub(crate) async fn ask(&self, method: &str, path: &str, media: &str, body: &str) -> Answer {
        let mut stream = self.send(method, path, media, body).await;
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        Answer::parse(&text)
    }

    /// Sends a request and leaves the answer to be read.
    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        media: &str,
        body: &str,
    ) -> UnixStream {
        let mut stream = UnixStream::connect(self.socket()).await.unwrap();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: {media}\r\n\
             Content-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(body.as_bytes()).await.unwrap();
        stream
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, "", "").await
    }

    pub(crate) async fn post(&self, path: &str, object: &Value) -> Answer {
        let body = object.to_string();
        self.ask("POST", path, "application/json", &body).await
    }
}

impl Answer {
    pub(crate) fn parse(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let code = head.split(' ').nth(1).unwrap().parse().unwrap();
        let is_chunked = head
            .to_ascii_lowercase()
            .contains("transfer-encoding: chunked");
        Self {
            code,
            head: head.to_owned(),
            body: if is_chunked {
                joined(body)
            } else {
                body.to_owned()
            },
        }
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// What went wrong.
    pub(crate) fn message(&self) -> String {
        self.json()["message"].as_str().unwrap().to_owned()
    }
}

/// A body without the lengths of its chunks.
fn joined(mut chunks: &str) -> String {
    let mut body = String::new();
    while let Some((length, rest)) = chunks.split_once("\r\n") {
        let length = usize::from_str_radix(length, 16).unwrap();
        body.push_str(&rest[..length]);
        chunks = rest[length..].strip_prefix("\r\n").unwrap();
    }
    body
}
