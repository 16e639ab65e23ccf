//! A way to a server that can be closed and opened.

use std::net::SocketAddr;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch::{self, Sender};

pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    is_open: Sender<bool>,
}

impl Proxy {
    pub(crate) async fn start(upstream: &str) -> Self {
        let upstream = upstream.trim_start_matches("http://").to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (is_open, opened) = watch::channel(true);
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let (upstream, mut opened) = (upstream.clone(), opened.clone());
                tokio::spawn(async move {
                    let pass = async {
                        let mut server = TcpStream::connect(upstream).await?;
                        copy_bidirectional(&mut client, &mut server).await
                    };
                    // Either end may close the connection, and so does a closed proxy.
                    tokio::select! {
                        _ = opened.wait_for(|is_open| !is_open) => {}
                        _ = pass => {}
                    }
                });
            }
        });
        Self { address, is_open }
    }

    pub(crate) fn close(&self) {
        self.is_open.send_replace(false);
    }

    pub(crate) fn open(&self) {
        self.is_open.send_replace(true);
    }
}
