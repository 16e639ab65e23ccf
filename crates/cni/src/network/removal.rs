//! Deleting a container's interface without waiting longer than needed.
//!
//! Once an interface is gone for everybody, the kernel still keeps whoever deleted it waiting, some milliseconds, until no
//! processor can be using it. That time is used for other work; and since a process does not end before the kernel lets go
//! of all its threads, a program that is to end soon has another one wait, which nobody waits for.

use std::ffi::OsStr;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use tokio::sync::oneshot;
use tortie_kernel::namespace;
use tortie_kernel::route::Socket;

use super::kernel;
use crate::error::{Code, Error, Result};

/// How long the kernel may take to delete an interface.
const PATIENCE: Duration = Duration::from_secs(20);

/// How often it is asked whether the interface is gone.
const INTERVAL: Duration = Duration::from_micros(500);

/// The name by which this program only deletes an interface of the network namespace that it is started in.
const DELETER: &str = "tortie-interface-deleter";

/// Who waits until the kernel is done with an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiting {
    /// This process.
    Here,
    /// Another process of the same program, which answers to a name of its own; see [`delete_by_program_name`].
    Elsewhere,
}

/// An interface that is being deleted.
#[derive(Debug)]
pub(crate) struct Removal {
    name: String,
    gone: oneshot::Receiver<Result<()>>,
}

type Report = oneshot::Sender<Result<()>>;

impl Removal {
    /// Begins to delete a container's interface. One that is gone, also with its whole namespace, is no error.
    pub(crate) fn start(namespace: &Path, name: &str, waiting: Waiting) -> Self {
        let (report, gone) = oneshot::channel();
        let (path, given) = (namespace.to_owned(), name.to_owned());
        thread::spawn(move || remove(&path, &given, waiting, report));
        Self {
            name: name.to_owned(),
            gone,
        }
    }

    /// Waits until the interface is gone for everybody.
    pub(crate) async fn gone(self) -> Result<()> {
        if let Ok(Ok(outcome)) = tokio::time::timeout(PATIENCE, self.gone).await {
            return outcome;
        }
        let message = format!("`{}` in the container was not deleted in time", self.name);
        Err(Error::new(Code::TryLater, message))
    }
}

fn remove(path: &Path, name: &str, waiting: Waiting, report: Report) {
    // Nobody listens who has lost patience.
    let container = match namespace::open(path) {
        Ok(file) => file,
        Err(error) if path.as_os_str().is_empty() || error.kind() == io::ErrorKind::NotFound => {
            let _ = report.send(Ok(()));
            return;
        }
        Err(error) => {
            let message = format!("the network namespace {} cannot be opened", path.display());
            let _ = report.send(Err(Error::of(Code::InvalidNamespace, message)(error)));
            return;
        }
    };
    let mut report = Some(report);
    let entered = namespace::run_in(container.as_fd(), || {
        if let Some(report) = report.take() {
            remove_here(name, waiting, report);
        }
    });
    let outcome = match entered {
        // Of a namespace that was unmounted an ordinary file may be left.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        Err(error) => Err(kernel(
            "the container's network namespace cannot be entered",
        )(error)),
        Ok(()) => Ok(()),
    };
    if let Some(report) = report {
        let _ = report.send(outcome);
    }
}

/// Deletes an interface of the calling thread's namespace, and reports as soon as it cannot be found any more.
fn remove_here(name: &str, waiting: Waiting, report: Report) {
    let opened = Socket::open().and_then(|deleting| Ok((deleting, Socket::open()?)));
    let (mut deleting, mut looking) = match opened {
        Ok(sockets) => sockets,
        Err(error) => {
            let error = kernel("the kernel's routing cannot be reached")(error);
            let _ = report.send(Err(error));
            return;
        }
    };
    if waiting == Waiting::Elsewhere && is_deleted_elsewhere(name, &mut looking) {
        let _ = report.send(Ok(()));
        return;
    }
    thread::scope(|scope| {
        let work = scope.spawn(move || super::delete(&mut deleting, name).map(drop));
        while !work.is_finished() {
            if matches!(looking.link(name), Ok(None)) {
                let _ = report.send(Ok(()));
                return;
            }
            thread::sleep(INTERVAL);
        }
        let outcome = work.join();
        let failed = || Error::new(Code::Kernel, format!("`{name}` was not deleted"));
        let _ = report.send(outcome.unwrap_or_else(|_| Err(failed())));
    });
}

/// Has another process delete an interface of the calling thread's namespace, and tells whether that has come about.
fn is_deleted_elsewhere(name: &str, looking: &mut Socket) -> bool {
    if matches!(looking.link(name), Ok(None)) {
        return true;
    }
    let Ok(mut child) = start_deleter(name) else {
        return false;
    };
    loop {
        if matches!(looking.link(name), Ok(None)) {
            return true;
        }
        if !matches!(child.try_wait(), Ok(None)) {
            // It may have done it just before it ended.
            return matches!(looking.link(name), Ok(None));
        }
        thread::sleep(INTERVAL);
    }
}

/// It keeps nothing open that others wait for.
fn start_deleter(name: &str) -> io::Result<Child> {
    Command::new("/proc/self/exe")
        .arg0(DELETER)
        .arg(name)
        .current_dir("/")
        .env_clear()
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
}

/// Deletes an interface, if the program was started for that: by the name and with the argument of [`Waiting::Elsewhere`].
/// Gives whether that worked; none if it was started for something else.
pub fn delete_by_program_name(program: &OsStr, argument: Option<&OsStr>) -> Option<bool> {
    if program != DELETER {
        return None;
    }
    let name = argument.and_then(OsStr::to_str)?;
    let mut socket = Socket::open().ok()?;
    Some(super::delete(&mut socket, name).is_ok())
}
