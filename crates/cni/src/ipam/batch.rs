//! One plugin on a node changes blocks at a time, and does what others wait for as well.
//!
//! ```text
//! plugin ──what it wants──▶ a file of its own ──waits for the lock──▶ done by another? ─yes─▶ result
//!                                                     no: all that waits, in one go ─▶ results for those who wait
//! ```
//!
//! All pods of a node have addresses of the same blocks, so that plugins at once would only get in each other's way. One
//! after the other, each would read and write the block anew; together they are one change.
//!
//! # Invariants
//! - Nothing is done for a plugin that has ended: each has its file locked, and the kernel unlocks it with the process.
//! - What could not be done for another is not answered: that one tries itself, and says what is wrong.
//! - What was done for a plugin that ended before it knew is as if that one had ended after it knew: the runtime's DEL comes.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use futures::future::{join, join_all};
use ipnet::IpNet;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tortie_error::Causes;
use tortie_ipam::{Assigned, Assignment, AutoAssign, Ipam};

use super::calico::{ipam, is_not_found, upgrade_host, within};
use super::lock::{self, Lock};
use crate::context::Context;
use crate::error::{Code, Error, Result};

/// How many others are served in one batch. More would wait long for the first of them.
const MAX_BATCH: usize = 64;

/// What the name of a file with a result ends with.
const RESULT: &str = "done";

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Job {
    /// An address of each IP version that is asked for.
    Assign(Box<AutoAssign>),
    /// Everything under these handles is given back. That there are none is no error.
    Release(Vec<String>),
}

/// What a plugin wants, for whoever has the lock.
#[derive(Debug, Serialize, Deserialize)]
struct Request {
    /// The datastore that it uses.
    datastore: String,
    job: Job,
}

/// What was done: the addresses that were assigned.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Outcome(Vec<IpNet>);

/// The folder in which plugins that wait have their files.
struct Queue {
    folder: PathBuf,
}

/// The place of one plugin in the queue, until it is dropped.
struct Place {
    path: PathBuf,
    /// Locked as long as the plugin lives.
    file: File,
}

/// Another plugin that waits.
struct Other {
    path: PathBuf,
    job: Job,
}

/// Does a job when it is this plugin's turn, unless another has done it by then. Gives the addresses that were assigned.
pub(super) async fn run(context: &Context<'_>, job: Job) -> Result<Vec<IpNet>> {
    let request = Request {
        datastore: context.datastore.place().to_owned(),
        job,
    };
    let queue = Queue::beside(lock::path(context.config));
    let place = match queue.enter(&request) {
        Ok(place) => Some(place),
        Err(error) => {
            tracing::warn!(error = %Causes(&error), "No other plugin can do what this one waits for");
            None
        }
    };
    let _lock = Lock::acquire(context.config).await;
    if let Some(Outcome(addresses)) = place.as_ref().and_then(Place::result) {
        return Ok(addresses);
    }
    let own = place.as_ref().map(|place| place.path.as_path());
    let others = queue.others(own, &request.datastore);
    let ipam = ipam(context);
    let is_assignment = |job: &Job| matches!(job, Job::Assign(_));
    if context.datastore.cluster.is_some()
        && (is_assignment(&request.job) || others.iter().any(|other| is_assignment(&other.job)))
    {
        upgrade_host(&ipam, context).await?;
    }
    let for_others = others.iter().map(|other| serve(&ipam, other));
    let (done, _) = join(carry_out(&ipam, &request.job), join_all(for_others)).await;
    done
}

/// Does what another waits for, and leaves the result if there is one.
async fn serve(ipam: &Ipam, other: &Other) {
    let outcome = match carry_out(ipam, &other.job).await {
        Ok(addresses) => write_result(&other.path, &Outcome(addresses)),
        Err(error) => Err(io::Error::other(error)),
    };
    if let Err(error) = outcome {
        tracing::debug!(error = %Causes(&error), "Another plugin has to do itself what it waits for");
    }
}

async fn carry_out(ipam: &Ipam, job: &Job) -> Result<Vec<IpNet>> {
    match job {
        Job::Assign(request) => assign(ipam, request).await,
        Job::Release(handles) => {
            release(ipam, handles).await?;
            Ok(Vec::new())
        }
    }
}

async fn assign(ipam: &Ipam, request: &AutoAssign) -> Result<Vec<IpNet>> {
    let Assigned { v4, v6 } = within(Box::pin(ipam.auto_assign(request))).await?;
    for (assignment, family) in [(&v4, 4), (&v6, 6)] {
        if let Some(shortfall) = &assignment.shortfall {
            // Half of what was asked for is of no use.
            release(ipam, request.handle.as_slice()).await?;
            let message = format!("failed to request IPv{family} addresses: {shortfall}");
            return Err(Error::new(Code::Address, message));
        }
    }
    let first = |assignment: &Assignment| assignment.addresses.first().copied();
    Ok([&v4, &v6].into_iter().filter_map(first).collect())
}

/// Gives back what handles have, for who has the lock.
pub(super) async fn release(ipam: &Ipam, handles: &[String]) -> Result<()> {
    let releases = handles
        .iter()
        .map(|handle| within(Box::pin(ipam.release_by_handle(handle))));
    for outcome in join_all(releases).await {
        match outcome {
            Ok(_) => {}
            Err(error) if is_not_found(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

// === impl Queue ===

impl Queue {
    fn beside(lock: &Path) -> Self {
        Self {
            folder: lock.with_extension("queue"),
        }
    }

    fn enter(&self, request: &Request) -> io::Result<Place> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder)?;
        let moment = Timestamp::now().as_nanosecond();
        let path = self
            .folder
            .join(format!("{}-{moment:x}", std::process::id()));
        let mut place = Place {
            file: new_file(&path)?,
            path,
        };
        place.file.lock()?;
        place.file.write_all(&serde_json::to_vec(request)?)?;
        Ok(place)
    }

    /// Those who wait for the same datastore, and live. What others left behind is removed.
    fn others(&self, own: Option<&Path>, datastore: &str) -> Vec<Other> {
        let Ok(entries) = fs::read_dir(&self.folder) else {
            return Vec::new();
        };
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let others = paths.filter(|path| Some(path.as_path()) != own);
        let waiting = others.filter_map(|path| waiting(path, datastore));
        waiting.take(MAX_BATCH).collect()
    }
}

/// The plugin that waits with this file, unless it has ended or was served.
fn waiting(path: PathBuf, datastore: &str) -> Option<Other> {
    if path
        .extension()
        .is_some_and(|extension| extension == RESULT)
    {
        if !path.with_extension("").exists() {
            let _ = fs::remove_file(&path);
        }
        return None;
    }
    let file = File::open(&path).ok()?;
    if !matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
        let _ = fs::remove_file(&path);
        return None;
    }
    if result_of(&path).exists() {
        return None;
    }
    // One that is just being written is served the next time.
    let request: Request = serde_json::from_reader(io::BufReader::new(file)).ok()?;
    let job = (request.datastore == datastore).then_some(request.job)?;
    Some(Other { path, job })
}

// === impl Place ===

impl Place {
    /// What another has done.
    fn result(&self) -> Option<Outcome> {
        serde_json::from_slice(&fs::read(result_of(&self.path)).ok()?).ok()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
        let _ = fs::remove_file(result_of(&self.path));
    }
}

fn result_of(path: &Path) -> PathBuf {
    path.with_extension(RESULT)
}

/// Nobody reads it before the lock is free again, so it need not appear as a whole.
fn write_result(path: &Path, done: &Outcome) -> io::Result<()> {
    new_file(&result_of(path))?.write_all(&serde_json::to_vec(done)?)
}

fn new_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600).open(path)
}
