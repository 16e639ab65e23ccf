//! Accepts connections and ends them.

use std::future::Future;
use std::io::{self, Write as _};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tortie_error::Causes;

use super::session::{self, greeting};
use crate::store::Store;

/// How many connections there may be; each watch has one. A quarter of the files that a process may usually open.
const MAX_CONNECTIONS: usize = 256;

/// How long requests under way may take to be answered at the end.
const GRACE: Duration = Duration::from_secs(5);

/// How long to wait when no connection can be accepted, usually for lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves a datastore to other processes of the same user and of root, until the shutdown. Requests under way are then
/// still answered, watches end, and the socket's file is removed.
pub async fn serve(
    store: Arc<dyn Store>,
    listener: UnixListener,
    shutdown: impl Future<Output = ()> + Send,
) {
    let (stop, stopped) = watch::channel(false);
    let mut sessions = JoinSet::new();
    tokio::pin!(shutdown);
    loop {
        let accepted = tokio::select! {
            () = &mut shutdown => break,
            Some(_) = sessions.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => match refusal(&stream, sessions.len()) {
                None => {
                    let session = session::run(stream, Arc::clone(&store), stopped.clone());
                    sessions.spawn(async {
                        match session.await {
                            Ok(()) => {}
                            // A client that ends does not wait for answers that it needs no more.
                            Err(error) if is_gone(&error) => {}
                            Err(error) => {
                                tracing::warn!(
                                    error = %Causes(&error),
                                    "Ended a connection to the datastore's socket"
                                );
                            }
                        }
                    });
                }
                Some(reason) => refuse(stream, reason),
            },
            Err(error) => {
                tracing::warn!(
                    error = %Causes(&error),
                    "Cannot accept on the datastore's socket"
                );
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    remove_file(&listener);
    drop(listener);
    let _ = stop.send(true);
    let all_ended = async { while sessions.join_next().await.is_some() {} };
    if tokio::time::timeout(GRACE, all_ended).await.is_err() {
        tracing::warn!("Connections to the datastore's socket did not end in time");
    }
}

/// Why a connection is not wanted, if so.
fn refusal(stream: &UnixStream, connections: usize) -> Option<String> {
    if connections >= MAX_CONNECTIONS {
        return Some(format!(
            "there are {MAX_CONNECTIONS} connections already; end some of the processes that use it"
        ));
    }
    match stream.peer_cred() {
        Ok(peer) => {
            let (peer, own) = (peer.uid(), rustix::process::geteuid().as_raw());
            (!is_welcome(peer, own)).then(|| {
                format!("user {peer} may not use it; only root and user {own}, who runs it, may")
            })
        }
        Err(error) => Some(format!("cannot tell who connects: {error}")),
    }
}

fn is_welcome(peer: u32, own: u32) -> bool {
    peer == 0 || peer == own
}

/// Whether it only says that the other side is there no more.
fn is_gone(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe
    )
}

/// Says why, without waiting: the buffer of a new connection has room for that.
fn refuse(stream: UnixStream, reason: String) {
    tracing::warn!(reason, "Refused a connection to the datastore's socket");
    let say = || -> io::Result<()> {
        let greeting = greeting(Some(reason), false)?;
        stream.into_std()?.write_all(&greeting)
    };
    if let Err(error) = say() {
        tracing::debug!(error = %Causes(&error), "Cannot say why a connection is refused");
    }
}

/// While it still listens: a file that is not its own is then impossible.
fn remove_file(listener: &UnixListener) {
    let Ok(address) = listener.local_addr() else {
        return;
    };
    if let Some(path) = address.as_pathname()
        && let Err(error) = std::fs::remove_file(path)
    {
        tracing::debug!(path = %path.display(), error = %Causes(&error), "Cannot remove the datastore's socket");
    }
}

#[cfg(test)]
mod tests {
    use super::is_welcome;

    #[test]
    fn only_root_and_the_same_user_are_welcome() {
        assert!(is_welcome(0, 1000) && is_welcome(1000, 1000) && is_welcome(0, 0));
        assert!(!is_welcome(1001, 1000) && !is_welcome(1000, 0));
    }
}
