//! A way from one network namespace to a server in another.

use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;

use super::error::{Result, cannot};
use super::namespace::Namespace;

/// Makes an HTTP server of one namespace known in another, and gives its address there. The way stays open until the
/// process ends.
pub fn open_passage(from: &Namespace, to: &Namespace, endpoint: &str) -> Result<String> {
    let server = endpoint.trim_start_matches("http://").to_owned();
    let listener = from
        .run(|| TcpListener::bind("127.0.0.1:0"))?
        .map_err(cannot("listen in a namespace"))?;
    let address = listener
        .local_addr()
        .map_err(cannot("find the address of a socket"))?;
    let to = to.clone();
    thread::spawn(move || {
        for client in listener.incoming().map_while(io::Result::ok) {
            let server = to.run(|| TcpStream::connect(&server));
            if let Ok(Ok(server)) = server {
                join(&client, &server);
            }
        }
    });
    Ok(format!("http://{address}"))
}

fn join(one: &TcpStream, other: &TcpStream) {
    for (from, to) in [(one, other), (other, one)] {
        let (Ok(mut from), Ok(mut to)) = (from.try_clone(), to.try_clone()) else {
            return;
        };
        thread::spawn(move || {
            // Either end may close the connection at any time.
            let _ = io::copy(&mut from, &mut to);
            let _ = to.shutdown(Shutdown::Write);
        });
    }
}
