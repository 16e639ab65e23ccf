//! The API server's client in its own process.

use std::path::Path;

use anyhow::{Context as _, Result};
use http::{Request, Uri};
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioIo};
use kube::client::Body;

use tokio::net::UnixStream;
use tower::service_fn;

/// HTTP asks for the name of the server; at a socket it means nothing.
const NOBODY: &str = "localhost";

/// A client that goes through the server's socket. TLS would need a clock that is right: where that is years off, the
/// machine's own parts still have to find each other.
pub(in crate::commands) fn through(socket: &Path) -> kube::Client {
    let socket = socket.to_owned();
    let connect = service_fn(move |_: Uri| {
        let socket = socket.clone();
        Box::pin(async move { UnixStream::connect(socket).await.map(TokioIo::new) })
    });
    let connections = legacy::Client::builder(TokioExecutor::new()).build(connect);
    let service = service_fn(move |request: Request<Body>| {
        let connections = connections.clone();
        async move { anyhow::Ok(connections.request(with_authority(request)?).await?) }
    });
    kube::Client::new(service, "default")
}

/// The same request as it is sent to a server with a name.
fn with_authority(mut request: Request<Body>) -> Result<Request<Body>> {
    let path = request.uri().path_and_query();
    let path = path.context("a request without a path")?.clone();
    let uri = Uri::builder().scheme("http").authority(NOBODY);
    *request.uri_mut() = uri.path_and_query(path).build()?;
    Ok(request)
}
