//! Places for connections, and who gives way when there are no more.
//!
//! A connection is known once its client has shown who it is. Some places are never for known ones, so that there is always
//! one that is free or whose holder can be cut off: who comes now gets in, and the oldest of those who have shown nothing
//! leaves. Nobody can lock others out without showing who he is.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

/// How often it is said that all places are taken.
const REPORT_INTERVAL: Duration = Duration::from_secs(10);

/// The places of one listener.
#[derive(Debug)]
pub(crate) struct Places {
    all: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    taken: usize,
    /// How many of those are known.
    known: usize,
    by_address: HashMap<IpAddr, usize>,
    /// Those that are not known, by number: the oldest first.
    unknown: BTreeMap<u64, Unknown>,
    next: u64,
    reported: Option<Instant>,
}

#[derive(Debug)]
struct Unknown {
    address: IpAddr,
    cut: oneshot::Sender<()>,
}

/// The place of a connection, free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    places: Arc<Places>,
    number: u64,
    address: IpAddr,
    is_known: Mutex<bool>,
}

impl Places {
    pub(crate) fn new(all: usize) -> Arc<Self> {
        Arc::new(Self {
            all: all.max(1),
            state: Mutex::default(),
        })
    }

    /// A place for a client from an address, and what tells when it has to leave. None if there is no place, because those
    /// who have them are all known.
    pub(crate) fn enter(
        self: &Arc<Self>,
        address: IpAddr,
    ) -> Option<(Place, oneshot::Receiver<()>)> {
        let mut state = self.state();
        let own = state.by_address.get(&address).copied().unwrap_or_default();
        if state.taken >= self.all {
            state.report(self.all);
            state.cut_oldest(None)?;
        } else if own >= self.share(address) {
            state.report(self.all);
            state.cut_oldest(Some(address))?;
        }
        let (cut, is_cut) = oneshot::channel();
        let number = state.next;
        state.next += 1;
        state.taken += 1;
        *state.by_address.entry(address).or_default() += 1;
        state.unknown.insert(number, Unknown { address, cut });
        let place = Place {
            places: Arc::clone(self),
            number,
            address,
            is_known: Mutex::new(false),
        };
        Some((place, is_cut))
    }

    /// How many places clients of one address have. Those of this machine all have the same, and are not to keep out each
    /// other.
    fn share(&self, address: IpAddr) -> usize {
        if address.is_loopback() {
            self.all
        } else {
            self.all.div_ceil(4)
        }
    }

    /// How many places known clients have.
    fn for_known(&self) -> usize {
        self.all - self.all.div_ceil(16)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Cuts off the oldest connection that is not known, perhaps of one address only. Its place is free at once; the
    /// connection itself ends in a moment.
    fn cut_oldest(&mut self, of: Option<IpAddr>) -> Option<()> {
        let mut unknown = self.unknown.iter();
        let (number, _) =
            unknown.find(|(_, unknown)| of.is_none_or(|address| address == unknown.address))?;
        let number = *number;
        let Unknown { address, cut } = self.unknown.remove(&number)?;
        self.leave(address);
        // It may have ended by itself.
        let _ = cut.send(());
        Some(())
    }

    fn leave(&mut self, address: IpAddr) {
        self.taken -= 1;
        if let Some(own) = self.by_address.get_mut(&address) {
            *own -= 1;
            if *own == 0 {
                self.by_address.remove(&address);
            }
        }
    }

    fn report(&mut self, all: usize) {
        let now = Instant::now();
        let is_due = |reported: Instant| now.duration_since(reported) >= REPORT_INTERVAL;
        if self.reported.is_none_or(is_due) {
            self.reported = Some(now);
            tracing::warn!(
                places = all,
                taken = self.taken,
                unknown = self.unknown.len(),
                addresses = self.by_address.len(),
                "Places for connections run out; the oldest clients that have not shown who they are give way"
            );
        }
    }
}

impl Place {
    /// Notes that the client has shown who it is. There may be too many of those, and it stays as it was.
    pub(crate) fn set_known(&self) {
        let mut is_known = self.is_known();
        if *is_known {
            return;
        }
        let mut state = self.places.state();
        if state.known < self.places.for_known() && state.unknown.remove(&self.number).is_some() {
            state.known += 1;
            *is_known = true;
        }
    }

    /// Whether the client has shown who it is.
    pub(crate) fn known(&self) -> bool {
        *self.is_known()
    }

    fn is_known(&self) -> MutexGuard<'_, bool> {
        self.is_known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let is_known = self.known();
        let mut state = self.places.state();
        if is_known {
            state.known -= 1;
            state.leave(self.address);
        } else if state.unknown.remove(&self.number).is_some() {
            state.leave(self.address);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn far(number: u8) -> IpAddr {
        Ipv4Addr::new(192, 0, 2, number).into()
    }

    #[test]
    fn who_comes_gets_in_and_the_oldest_unknown_leaves() {
        let places = Places::new(3);
        let mut first = places.enter(HERE).unwrap();
        let mut second = places.enter(HERE).unwrap();
        let third = places.enter(far(1)).unwrap();
        first.0.set_known();
        let fourth = places.enter(far(2)).unwrap();
        assert_eq!(second.1.try_recv(), Ok(()));
        // A known one is not told anything.
        assert!(first.1.try_recv().is_err());
        assert_eq!(places.state().taken, 3);
        drop((first, second, third, fourth));
        let state = places.state();
        assert_eq!((state.taken, state.known), (0, 0));
        assert!(state.by_address.is_empty() && state.unknown.is_empty());
    }

    #[test]
    fn known_clients_never_take_all() {
        let places = Places::new(32);
        let known: Vec<_> = (0..32).map(|_| places.enter(HERE).unwrap()).collect();
        for (place, _) in &known {
            place.set_known();
        }
        let count = known.iter().filter(|(place, _)| place.known()).count();
        assert_eq!(count, 30);
        assert!(places.enter(HERE).is_some());
    }

    #[test]
    fn an_address_has_a_share() {
        let places = Places::new(8);
        let one = places.enter(far(1)).unwrap();
        one.0.set_known();
        let mut two = places.enter(far(1)).unwrap();
        let other = places.enter(far(2)).unwrap();
        let three = places.enter(far(1)).unwrap();
        assert_eq!(two.1.try_recv(), Ok(()));
        three.0.set_known();
        // All of the share are known.
        assert!(places.enter(far(1)).is_none());
        assert!(places.enter(far(2)).is_some());
        drop((one, two, three, other));
        assert!(places.enter(far(1)).is_some());
    }
}
