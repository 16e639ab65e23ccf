//! Who needs another block for a host waits for the one that is being claimed, or claims one.

use std::pin::pin;

use futures::future::{Either, select};
use ipnet::IpNet;
use tokio::sync::MutexGuard;

use super::affinities::Host;

/// What came first.
pub(super) enum Turn<'a> {
    /// Nobody else looks for a block for the host.
    Claims(MutexGuard<'a, ()>),
    /// Somebody is about to claim this block.
    Joins(IpNet),
}

/// Tells others which block is about to be the host's, as long as it lives.
pub(super) struct Announcement<'a> {
    host: &'a Host,
}

impl Host {
    /// Waits for the right to claim a block, or for a block that another claims and that will do.
    pub(super) async fn turn(&self, will_do: impl Fn(IpNet) -> bool) -> Turn<'_> {
        let mut coming = self.coming.subscribe();
        let joining = pin!(async {
            let found = coming.wait_for(|net| net.is_some_and(&will_do)).await;
            found.ok().and_then(|net| *net)
        });
        match select(pin!(self.claiming.lock()), joining).await {
            Either::Left((claiming, _)) => Turn::Claims(claiming),
            Either::Right((Some(net), _)) => Turn::Joins(net),
            Either::Right((None, claiming)) => Turn::Claims(claiming.await),
        }
    }

    /// Lets those who wait take addresses of a block with the write that claims it.
    pub(super) fn announce(&self, net: IpNet) -> Announcement<'_> {
        self.coming.send_replace(Some(net));
        Announcement { host: self }
    }
}

impl Drop for Announcement<'_> {
    fn drop(&mut self) {
        self.host.coming.send_replace(None);
    }
}
