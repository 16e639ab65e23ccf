//! Datagrams that go on from one pod to another.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::reach::Pod;

const PORT: u16 = 7000;
const INTERVAL: Duration = Duration::from_millis(2);

/// Datagrams to all addresses of a pod, until it is ended.
pub(crate) struct Stream {
    is_over: Arc<AtomicBool>,
    received: Arc<AtomicUsize>,
    sender: JoinHandle<usize>,
}

impl Stream {
    pub(crate) fn start(from: &Pod, to: &Pod) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let received = Arc::new(AtomicUsize::new(0));
        let mut sockets = Vec::new();
        for address in &to.addresses {
            let destination = SocketAddr::new(*address, PORT);
            let server = to.namespace.run(|| UdpSocket::bind(destination));
            let server = server.unwrap().unwrap();
            server
                .set_read_timeout(Some(Duration::from_millis(50)))
                .unwrap();
            let (is_over, received) = (Arc::clone(&is_over), Arc::clone(&received));
            thread::spawn(move || receive(&server, &is_over, &received));
            let any = if address.is_ipv4() {
                "0.0.0.0:0"
            } else {
                "[::]:0"
            };
            let client = from.namespace.run(|| UdpSocket::bind(any));
            let client = client.unwrap().unwrap();
            client.connect(destination).unwrap();
            sockets.push(client);
        }
        let is_ended = Arc::clone(&is_over);
        let sender = thread::spawn(move || {
            let mut sent = 0;
            while !is_ended.load(Ordering::Acquire) {
                for socket in &sockets {
                    sent += usize::from(socket.send(b"packet").is_ok());
                }
                thread::sleep(INTERVAL);
            }
            sent
        });
        Self {
            is_over,
            received,
            sender,
        }
    }

    /// Ends it, waits for what is under way, and tells how many datagrams did not arrive.
    pub(crate) fn end(self, under_way: Duration) -> usize {
        self.is_over.store(true, Ordering::Release);
        let sent = self.sender.join().unwrap();
        thread::sleep(under_way);
        assert!(sent > 100, "only {sent} datagrams were sent");
        sent - self.received.load(Ordering::Acquire)
    }
}

/// Counts datagrams until there are no more after the end.
fn receive(socket: &UdpSocket, is_over: &AtomicBool, received: &AtomicUsize) {
    let mut buffer = [0; 64];
    loop {
        match socket.recv(&mut buffer) {
            Ok(_) => {
                received.fetch_add(1, Ordering::AcqRel);
            }
            Err(_) if is_over.load(Ordering::Acquire) => return,
            Err(_) => {}
        }
    }
}
