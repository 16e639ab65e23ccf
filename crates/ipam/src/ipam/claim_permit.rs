//! Who needs another block for a host waits for the one that is being claimed, or claims one.

use std::pin::pin;

use futures::future::{Either, select};
use ipnet::IpNet;
use tokio::sync::MutexGuard;

use super::affinities::Host;

/// What came first.
pub(super) enum ClaimPermit<'a> {
    /// Nobody else looks for a block for the host.
    Granted(MutexGuard<'a, ()>),
    /// Somebody is about to claim this block.
    ClaimedByOther(IpNet),
}

/// Tells others which block is about to be the host's, as long as it lives.
pub(super) struct Announcement<'a> {
    host: &'a Host,
}

impl Host {
    /// Waits for the right to claim a block, or for a block that another claims and that will do.
    pub(super) async fn wait_for_claim(&self, will_do: impl Fn(IpNet) -> bool) -> ClaimPermit<'_> {
        let mut coming = self.coming.subscribe();
        let joining = pin!(async {
            let found = coming.wait_for(|net| net.is_some_and(&will_do)).await;
            found.ok().and_then(|net| *net)
        });
        match select(pin!(self.claiming.lock()), joining).await {
            Either::Left((claiming, _)) => ClaimPermit::Granted(claiming),
            Either::Right((Some(net), _)) => ClaimPermit::ClaimedByOther(net),
            Either::Right((None, claiming)) => ClaimPermit::Granted(claiming.await),
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
