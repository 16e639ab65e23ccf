//! How many requests are carried out at a time, and whose: what Kubernetes calls max in flight.
//!
//! Reads and writes have places of their own, so that neither keeps out the other. Nobody has more than half of them, and
//! some are kept for administrators, who may have to repair what fills the others. Questions about health need no place.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::http::Method;
use prometheus_client::metrics::gauge::Gauge;

use super::metrics::Metrics;
use crate::access::User;
use crate::failure::{Failure, Reason, Result};

/// After how many seconds a client that found no place should come back.
const RETRY_AFTER: u32 = 1;

/// How many requests are carried out at a time. In all they must be fewer than the threads that may block, of which tokio
/// has 512: the datastore needs some to read for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Places {
    /// Requests that read; watches count until they begin.
    pub reading: usize,
    /// Requests that write.
    pub writing: usize,
    /// More of each, which only administrators get.
    pub kept: usize,
}

impl Default for Places {
    fn default() -> Self {
        Self {
            reading: 200,
            writing: 100,
            kept: 32,
        }
    }
}

/// Gives places to requests.
pub(super) struct Admission {
    reading: Arc<Class>,
    writing: Arc<Class>,
}

/// The places of requests of one sort.
struct Class {
    name: &'static str,
    in_flight: Gauge,
    places: usize,
    kept: usize,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    all: usize,
    /// By the names of users who have any.
    by_user: HashMap<String, usize>,
}

/// The place of a request, free again when this is dropped.
pub(super) struct Place {
    class: Arc<Class>,
    user: String,
}

impl Admission {
    pub(super) fn new(places: Places, metrics: &Metrics) -> Self {
        let class = |name, request_kind, count| {
            Arc::new(Class {
                name,
                in_flight: metrics.in_flight(request_kind),
                places: count,
                kept: places.kept,
                taken: Mutex::default(),
            })
        };
        Self {
            reading: class("read", "readOnly", places.reading),
            writing: class("write", "mutating", places.writing),
        }
    }

    /// A place for a request of a user, or the failure that says when to come back.
    pub(super) fn enter(&self, user: &User, method: &Method) -> Result<Place> {
        let class = match *method {
            Method::GET | Method::HEAD => &self.reading,
            _ => &self.writing,
        };
        let mut taken = class.taken();
        let own = taken.by_user.get(&user.name).copied().unwrap_or_default();
        let has_place = if user.is_administrator() {
            taken.all < class.places + class.kept
        } else {
            taken.all < class.places && own < class.share()
        };
        if !has_place {
            let message = format!(
                "too many requests: {} that {} are under way, {own} of them of user {:?}; come back in {RETRY_AFTER} s",
                taken.all, class.name, user.name
            );
            let mut failure = Failure::new(Reason::TooManyRequests, message);
            failure.details.retry_after = Some(RETRY_AFTER);
            return Err(failure);
        }
        taken.all += 1;
        class.in_flight.inc();
        *taken.by_user.entry(user.name.clone()).or_default() += 1;
        Ok(Place {
            class: Arc::clone(class),
            user: user.name.clone(),
        })
    }
}

impl Class {
    /// How many places one user has who is no administrator.
    fn share(&self) -> usize {
        self.places.div_ceil(2)
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.class.taken();
        taken.all -= 1;
        self.class.in_flight.dec();
        if let Some(own) = taken.by_user.get_mut(&self.user) {
            *own -= 1;
            if *own == 0 {
                taken.by_user.remove(&self.user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(name: &str) -> User {
        User {
            name: name.to_owned(),
            ..User::default()
        }
    }

    fn admission() -> Admission {
        let places = Places {
            reading: 4,
            writing: 2,
            kept: 1,
        };
        Admission::new(places, &Metrics::new())
    }

    #[test]
    fn nobody_takes_all_places() {
        let admission = admission();
        let enter = |name: &str| admission.enter(&user(name), &Method::GET);
        let first = [enter("ann").unwrap(), enter("ann").unwrap()];
        let refused = enter("ann").err().unwrap();
        assert_eq!(refused.reason, Reason::TooManyRequests);
        assert_eq!(refused.details.retry_after, Some(1));
        assert_eq!(
            refused.message,
            "too many requests: 2 that read are under way, 2 of them of user \"ann\"; come back in 1 s"
        );
        let others = [enter("bob").unwrap(), enter("cleo").unwrap()];
        assert!(enter("dan").is_err());
        drop(first);
        assert!(enter("dan").is_ok());
        drop(others);
        assert!(admission.reading.taken().by_user.is_empty());
        assert_eq!(admission.reading.taken().all, 0);
        assert_eq!(admission.reading.in_flight.get(), 0);
    }

    #[test]
    fn administrators_find_places_that_others_do_not() {
        let admission = admission();
        let _all: Vec<_> = ["a", "b", "c", "d"]
            .iter()
            .map(|name| admission.enter(&user(name), &Method::HEAD).unwrap())
            .collect();
        let administrator = User::administrator();
        let _kept = admission.enter(&administrator, &Method::GET).unwrap();
        assert!(admission.enter(&administrator, &Method::GET).is_err());
        // Reads do not keep out writes.
        for method in [Method::POST, Method::DELETE] {
            std::mem::forget(admission.enter(&administrator, &method).unwrap());
        }
        assert!(admission.enter(&user("a"), &Method::PATCH).is_err());
    }
}
