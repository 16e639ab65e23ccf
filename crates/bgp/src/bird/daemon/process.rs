//! A process that is watched, whoever has started it.

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::process::{Child, Command};
use tokio::time::sleep;

use super::Options;
use crate::bird::error::{Error, Result};
use crate::bird::socket::Connection;

/// Between two looks at a process whose socket is closed and which has not ended.
const END_INTERVAL: Duration = Duration::from_millis(10);

/// It goes on when this value is dropped.
#[derive(Debug)]
pub(super) struct Process {
    id: u32,
    /// Refers to this process, and never to a later one with the same number. Readable when it has ended.
    handle: OwnedFd,
    origin: Origin,
}

/// How its end is heard of.
#[derive(Debug)]
enum Origin {
    Child(Child),
    /// It is another's child, or nobody's. The connection ends with it.
    Found(Connection),
}

impl Process {
    /// Starts BIRD in a process group of its own, so that what ends ours, as ^C does, leaves it alone. `-R`: it recovers the
    /// routes of one before it. `-d`: in the foreground, and with a log where its configuration says nothing about one.
    pub(super) fn start(options: &Options, recovers: bool) -> Result<Self> {
        let (program, log) = (&options.program, &options.log);
        // Writing never blocks, whether somebody reads or not; what does not fit is lost.
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = rustix::fs::open(log, flags, Mode::empty());
        let fifo = opened.map_err(|error| Error::file("open", log)(error.into()))?;
        let failed = |source| Error::Program {
            program: program.clone(),
            source,
        };
        let stdout = fifo.try_clone().map_err(failed)?;
        let mut command = Command::new(program);
        if recovers {
            command.arg("-R");
        }
        command.arg("-d").arg("-s").arg(&options.socket);
        let child = command
            .arg("-c")
            .arg(&options.config)
            .current_dir("/")
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::from(stdout))
            .stderr(Stdio::from(fifo))
            .spawn()
            .map_err(failed)?;
        // Nobody has waited for it yet, so that the number is still its own.
        let id = child.id().unwrap_or_default();
        Ok(Self {
            id,
            handle: handle(id).map_err(failed)?,
            origin: Origin::Child(child),
        })
    }

    /// The process at the other end of a connection. None if it is in another process namespace.
    pub(super) async fn found(mut connection: Connection) -> Result<Option<Self>> {
        let number = connection.process();
        let Some(id) = number.and_then(|number| u32::try_from(number).ok()) else {
            return Ok(None);
        };
        let Ok(handle) = handle(id) else {
            return Ok(None);
        };
        // Only one that still answers is known to be the one with this number.
        connection.status().await?;
        let origin = Origin::Found(connection);
        Ok(Some(Self { id, handle, origin }))
    }

    pub(super) fn id(&self) -> u32 {
        self.id
    }

    /// Waits for its end, and says how it came. May be asked again.
    pub(super) async fn ended(&mut self) -> String {
        match &mut self.origin {
            Origin::Child(child) => match child.wait().await {
                Ok(status) => status.to_string(),
                Err(error) => error.to_string(),
            },
            Origin::Found(connection) => {
                connection.closed().await;
                while !has_ended(&self.handle) {
                    sleep(END_INTERVAL).await;
                }
                "how is known to its parent".to_owned()
            }
        }
    }

    /// That it has ended already is no error.
    pub(super) fn signal(&self, signal: Signal) {
        if let Err(error) = pidfd_send_signal(&self.handle, signal)
            && error != rustix::io::Errno::SRCH
        {
            tracing::warn!(process = self.id, %error, "BIRD cannot be sent a signal");
        }
    }
}

fn handle(id: u32) -> io::Result<OwnedFd> {
    let number = i32::try_from(id).map_err(io::Error::other)?;
    let pid = Pid::from_raw(number).ok_or_else(|| io::Error::other("there is no process 0"))?;
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}

fn has_ended(handle: &OwnedFd) -> bool {
    let mut polled = [PollFd::new(handle, PollFlags::IN)];
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut polled, Some(&now)).is_ok_and(|ready| ready > 0)
}

/// The file that a BIRD was started with.
pub(super) fn config_of(process: u32) -> Option<PathBuf> {
    let line = std::fs::read(format!("/proc/{process}/cmdline")).ok()?;
    let words = String::from_utf8(line).ok()?;
    let mut words = words.split('\0').skip_while(|word| *word != "-c");
    words.nth(1).map(PathBuf::from)
}
