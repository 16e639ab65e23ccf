//! One agent per network namespace: two would undo each other's work, rule by rule.
//!
//! Who has the kernel listens under a name among the abstract addresses of unix sockets, of which each network namespace
//! has its own, and which end with the process. Who asks there is told who that is; root, and the user of the agent, may
//! also tell it to end.

use std::io::{self, Read as _, Write as _};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::thread;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::task::AbortHandle;

use crate::agent::{Agent, Error, Stop};

const NAME: &[u8] = b"tortie-agent";

/// What is said to an agent that is to end.
const END: &[u8] = b"end\n";

/// How long an agent that was told to end may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long an agent waits for what somebody says who asks, and who asks for an answer.
const ANSWER: Duration = Duration::from_secs(2);

/// The right to change the kernel, until this is dropped.
#[derive(Debug)]
pub(crate) struct Claim(AbortHandle);

impl Claim {
    /// Takes the network namespace of the calling thread, from another agent if that is wanted.
    pub(crate) fn take(agent: &Agent) -> Result<Self, Error> {
        let name = SocketAddr::from_abstract_name(NAME)?;
        let end = Instant::now() + PATIENCE;
        loop {
            match UnixListener::bind_addr(&name) {
                Ok(listener) => return Self::hold(agent, listener),
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                Err(error) => return Err(error.into()),
            }
            let takes_over = agent.options.take_over;
            match ask(&name, takes_over) {
                Ok(holder) if !takes_over => return Err(Error::Taken { holder }),
                Ok(holder) if Instant::now() >= end => return Err(Error::Stays { holder }),
                Ok(holder) => tracing::info!("waiting for {holder} to end"),
                // It ended just now, or will answer the next time.
                Err(error) if Instant::now() >= end => return Err(error.into()),
                Err(_) => {}
            }
            thread::sleep(Duration::from_millis(200));
        }
    }

    fn hold(agent: &Agent, listener: UnixListener) -> Result<Self, Error> {
        listener.set_nonblocking(true)?;
        let about = format!("process {} ({})\n", std::process::id(), agent.options.about);
        let stop = agent.stop();
        let runtime = &agent.options.runtime;
        let listener = {
            let _entered = runtime.enter();
            tokio::net::UnixListener::from_std(listener)?
        };
        let task = runtime.spawn(async move {
            loop {
                // One at a time, and each for a short time only: there is nothing to hurry about.
                if let Ok((stream, _)) = listener.accept().await {
                    let told = tokio::time::timeout(ANSWER, answer(stream, &about, &stop));
                    let _ = told.await;
                }
            }
        });
        Ok(Self(task.abort_handle()))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Tells somebody who has the kernel, and ends if that one says so and may.
async fn answer(mut stream: tokio::net::UnixStream, about: &str, stop: &Stop) -> io::Result<()> {
    let asker = stream.peer_cred()?;
    stream.write_all(about.as_bytes()).await?;
    let mut said = [0; END.len()];
    stream.read_exact(&mut said).await?;
    let own = tokio::net::UnixStream::pair()?.0.peer_cred()?.uid();
    if said == END && (asker.uid() == 0 || asker.uid() == own) {
        let pid = asker.pid().unwrap_or_default();
        tracing::warn!("process {pid} takes over; what is enforced stays as it is");
        stop.stop();
    }
    Ok(())
}

/// Asks who has the kernel, and tells that one to end if that is wanted.
fn ask(name: &SocketAddr, ends: bool) -> io::Result<String> {
    let mut stream = UnixStream::connect_addr(name)?;
    stream.set_read_timeout(Some(ANSWER))?;
    stream.set_write_timeout(Some(ANSWER))?;
    let mut holder = [0; 512];
    let read = stream.read(&mut holder)?;
    if ends {
        stream.write_all(END)?;
    }
    let holder = String::from_utf8_lossy(&holder[..read]);
    Ok(holder.trim().to_owned())
}
