//! Connections that stay open while something changes.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};

use crate::e2e::flow::{Machine, PATIENCE};

/// A TCP connection that stays open.
pub(crate) struct Conversation {
    client: TcpStream,
    server: TcpStream,
}

impl Conversation {
    /// Opens a connection, which must come about.
    pub(crate) fn open(client: &Machine, server: &Machine, address: IpAddr, port: u16) -> Self {
        let address = SocketAddr::new(address, port);
        let listen = || TcpListener::bind(address);
        let listener = server.namespace.run(listen).unwrap().unwrap();
        let connect = || TcpStream::connect_timeout(&address, PATIENCE);
        let client = client.namespace.run(connect).unwrap().unwrap();
        let (server, _) = listener.accept().unwrap();
        for stream in [&client, &server] {
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            stream.set_nodelay(true).unwrap();
        }
        Self { client, server }
    }

    /// Says something both ways.
    #[track_caller]
    pub(crate) fn go_on(&mut self) {
        for word in [b"one", b"two"] {
            let mut heard = [0; 3];
            self.client.write_all(word).unwrap();
            self.server.read_exact(&mut heard).unwrap();
            self.server.write_all(&heard).unwrap();
            self.client.read_exact(&mut heard).unwrap();
            assert_eq!(heard, *word);
        }
    }
}
