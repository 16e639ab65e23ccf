//! A way to a kube-apiserver that answers for it where it is told to.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use kube::client::Body;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// What is answered in place of the API server: requests whose path has this part get this status.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lie {
    pub(crate) part: &'static str,
    pub(crate) status: u16,
}

/// Passes requests on, except for some.
pub(crate) struct RefusingApi {
    pub(crate) address: SocketAddr,
    state: Arc<Mutex<State>>,
    _accepting: JoinSet<()>,
}

struct State {
    lie: Option<Lie>,
    connections: JoinSet<()>,
}

impl RefusingApi {
    pub(crate) async fn start(client: kube::Client) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(State {
            lie: None,
            connections: JoinSet::new(),
        }));
        let mut accepting = JoinSet::new();
        let shared = Arc::clone(&state);
        accepting.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (client, state) = (client.clone(), Arc::clone(&shared));
                let service =
                    service_fn(move |request| answer(client.clone(), Arc::clone(&state), request));
                shared.lock().unwrap().connections.spawn(async move {
                    let builder = Builder::new(TokioExecutor::new());
                    // Clients end connections as they like.
                    let _ = builder
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        Self {
            address,
            state,
            _accepting: accepting,
        }
    }

    /// Ends all connections, and answers so from now on.
    pub(crate) fn lie(&self, lie: Option<Lie>) {
        let mut state = self.state.lock().unwrap();
        state.lie = lie;
        state.connections.abort_all();
    }
}

async fn answer(
    client: kube::Client,
    state: Arc<Mutex<State>>,
    request: Request<Incoming>,
) -> Result<Response<Body>, kube::Error> {
    let lie = state.lock().unwrap().lie;
    let path = request.uri().path();
    let Some(Lie { status, .. }) = lie.filter(|lie| path.contains(lie.part)) else {
        // Who only reads sends no content.
        return client.send(request.map(|_| Body::empty())).await;
    };
    let content = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure",
        "code": status, "message": "not that I know of", "reason": "",
    });
    let mut response = Response::new(Body::from(content.to_string().into_bytes()));
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    Ok(response)
}
