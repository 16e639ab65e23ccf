//! What is to be done when a node is gone.

use std::net::IpAddr;

use super::Ipam;
use super::affinities::Conditions;
use crate::block::handle_of;
use crate::error::{Error, Result};
use crate::request::{Owner, ReleaseIp, Released, attribute};

/// What became of the addresses of a node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Removed {
    /// What was released.
    pub released: Vec<IpAddr>,
    /// Addresses in its blocks of which nobody says that the node has them. They are left alone.
    pub kept: Vec<IpAddr>,
}

impl Ipam {
    /// Releases every address that a node had, in whichever block, and gives its blocks up. Addresses that other nodes have
    /// in its blocks stay theirs.
    pub async fn remove_host(&self, host: &str) -> Result<Removed> {
        let owner = Owner::host(host);
        let mut outcome = Removed::default();
        let mut requests = Vec::new();
        let mut own = Vec::new();
        for copy in self.list_blocks().await?.into_values().flatten() {
            if copy.block.is_of(&owner) {
                own.push(copy.block.net());
            }
            for (address, held) in copy.block.allocations() {
                if held.released_at.is_some() {
                    continue;
                }
                match held.active_owner_attrs.get(attribute::NODE) {
                    // By its number only: should the address go to another meanwhile, it stays with that one.
                    Some(node) if node == host => requests.push(ReleaseIp {
                        address,
                        handle: handle_of(held).map(str::to_owned),
                        sequence_number: Some(copy.block.sequence_of(address)),
                    }),
                    None if copy.block.is_of(&owner) => outcome.kept.push(address),
                    _ => {}
                }
            }
        }
        outcome.released = self.release_current(&requests).await?;
        self.release_host_affinities(&owner, false).await?;
        // Blocks to which no claim was left.
        for net in own {
            self.give_up(&owner, net, Conditions::default()).await?;
        }
        Ok(outcome)
    }

    /// Releases what still is as the requests say, and tells what that was.
    async fn release_current(&self, requests: &[ReleaseIp]) -> Result<Vec<IpAddr>> {
        let of = |done: &Released| -> Vec<IpAddr> {
            let addresses = done.released.iter().map(|request| request.address);
            addresses
                .filter(|address| !done.unallocated.contains(address))
                .collect()
        };
        let (mut released, dealt_with) = match self.release(requests).await {
            Ok(done) => return Ok(of(&done)),
            Err(error) if !matches!(error.cause(), Error::Outdated { .. }) => return Err(error),
            Err(error) => {
                let done = error.released().cloned().unwrap_or_default();
                (of(&done), done.released)
            }
        };
        // A request that is outdated fails with all others for its block.
        for request in requests
            .iter()
            .filter(|request| !dealt_with.contains(request))
        {
            match self.release(std::slice::from_ref(request)).await {
                Ok(done) => released.extend(of(&done)),
                Err(error) if matches!(error.cause(), Error::Outdated { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(released)
    }
}
