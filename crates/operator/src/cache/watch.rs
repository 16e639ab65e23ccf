//! Fills a cache: lists in pages, watches, and begins anew when the API server forgot where the watch was.

use std::sync::Weak;
use std::time::{Duration, Instant};

use futures::{StreamExt as _, pin_mut};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::utils::Backoff as WatchBackoff;
use kube::runtime::watcher::{Config, Error, Event, watcher};
use kube::{Api, Client, Resource as _};
use tortie_error::Causes;
use tracing::Instrument as _;

use super::wire::{Decoded, Wire};
use super::{CacheOptions, Shared};
use crate::key::ObjectKey;
use crate::object::Object;
use crate::queue::Backoff;

/// Watches until the cache is gone.
pub(super) async fn run<K: Object>(
    client: Client,
    options: CacheOptions<K>,
    cache: Weak<Shared<K>>,
) {
    let kind = Wire::<K, false>::kind(&());
    let following = async {
        if follow::<K, false>(client.clone(), &options, &cache).await == End::Undecodable {
            follow::<K, true>(client, &options, &cache).await;
        }
    };
    following
        .instrument(tracing::error_span!("watch", %kind))
        .await;
}

#[derive(PartialEq, Eq)]
enum End {
    /// Nobody has the cache any more.
    Dropped,
    /// Something came that is not of the type.
    Undecodable,
}

async fn follow<K: Object, const CAREFUL: bool>(
    client: Client,
    options: &CacheOptions<K>,
    cache: &Weak<Shared<K>>,
) -> End {
    let api: Api<Wire<K, CAREFUL>> = match &options.namespace {
        Some(namespace) => Api::namespaced(client, namespace),
        None => Api::all(client),
    };
    let config = Config {
        label_selector: options.labels.clone(),
        field_selector: options.fields.clone(),
        ..Config::default().page_size(options.page_size.max(1))
    };
    let stream = watcher(api, config).backoff(Delays::new());
    pin_mut!(stream);
    while let Some(event) = stream.next().await {
        let Some(cache) = cache.upgrade() else {
            break;
        };
        match event {
            Ok(event) => take(&cache, event, options.trim),
            // It lists again at once: nothing to worry about.
            Err(Error::WatchError(status)) if status.code == 410 => {
                tracing::info!("The API server forgot where the watch was; listing again");
            }
            Err(error) => {
                tracing::warn!(error = %Causes(&error), "Watch failed; will be tried again");
                if !CAREFUL && is_undecodable(&error) {
                    return End::Undecodable;
                }
            }
        }
    }
    End::Dropped
}

fn is_undecodable(error: &Error) -> bool {
    match error {
        Error::InitialListFailed(error)
        | Error::WatchStartFailed(error)
        | Error::WatchFailed(error) => {
            match error {
                kube::Error::SerdeError(_) => true,
                // What the client makes of an event that is neither an object nor a status.
                kube::Error::Api(status) => status.code == 0,
                _ => false,
            }
        }
        Error::WatchError(_) | Error::NoResourceVersion => false,
    }
}

fn take<K: Object, const CAREFUL: bool>(
    cache: &Shared<K>,
    event: Event<Wire<K, CAREFUL>>,
    trim: Option<fn(&mut K)>,
) {
    let trimmed = |mut object: K| {
        object.trim();
        if let Some(trim) = trim {
            trim(&mut object);
        }
        object
    };
    let mut state = cache.write();
    match event {
        Event::Init => state.begin_list(),
        Event::InitApply(wire) | Event::Apply(wire) => match wire.decoded {
            Decoded::Object(object) => state.apply(trimmed(object)),
            Decoded::Broken { key, error } => {
                tracing::error!(%key, error, "Object cannot be read; it counts as absent");
                state.delete(&key, None);
            }
        },
        Event::Delete(wire) => match wire.decoded {
            Decoded::Object(object) => {
                state.delete(&ObjectKey::of(&object), Some(trimmed(object)));
            }
            Decoded::Broken { key, .. } => state.delete(&key, None),
        },
        Event::InitDone => {
            state.end_list();
            drop(state);
            cache.synced.send_replace(true);
        }
    }
}

/// Delays between attempts that start anew after a time without failures. The stream's own signal to start anew comes
/// with each attempt, also of those that fail.
struct Delays {
    backoff: Backoff,
    failures: u32,
    last: Option<Instant>,
}

impl Delays {
    fn new() -> Self {
        let backoff = Backoff {
            first: Duration::from_millis(250),
            most: Duration::from_secs(10),
            jitter: 0.5,
        };
        Self {
            backoff,
            failures: 0,
            last: None,
        }
    }
}

impl Iterator for Delays {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        if self
            .last
            .is_none_or(|last| last.elapsed() > 3 * self.backoff.most)
        {
            self.failures = 0;
        }
        self.last = Some(Instant::now());
        let delay = self.backoff.after(self.failures);
        self.failures = self.failures.saturating_add(1);
        Some(delay)
    }
}

impl WatchBackoff for Delays {
    fn reset(&mut self) {}
}
