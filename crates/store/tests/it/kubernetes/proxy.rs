//! A way to the API server that can be cut.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Passes connections on to a server until they are cut.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    connections: Arc<Mutex<JoinSet<()>>>,
    _accepting: JoinSet<()>,
}

impl Proxy {
    pub(crate) async fn start(url: &str) -> Self {
        let target = url.trim_start_matches("https://").to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(Mutex::new(JoinSet::new()));
        let mut accepting = JoinSet::new();
        let accepted = Arc::clone(&connections);
        accepting.spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let target = target.clone();
                accepted.lock().unwrap().spawn(async move {
                    let mut server = TcpStream::connect(target).await.unwrap();
                    // Either side may end the connection.
                    let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
                });
            }
        });
        Self {
            address,
            connections,
            _accepting: accepting,
        }
    }

    /// Ends all connections there are.
    pub(crate) fn cut(&self) {
        self.connections.lock().unwrap().abort_all();
    }
}
