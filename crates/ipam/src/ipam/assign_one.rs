//! Giving out one particular address.

use ipnet::IpNet;

use super::jobs::{Job, Operation, Outcome};
use super::world::World;
use super::{Ipam, MAX_TRIES};
use crate::error::{Error, Result};
use crate::pools;
use crate::request::{AssignIp, Holder, Owner};

impl Ipam {
    /// Assigns one particular address, reserved or not.
    pub async fn assign_ip(&self, request: &AssignIp) -> Result<()> {
        let since = self.tick();
        let owner = Owner::of_use(&request.host, request.used_for);
        for _ in 0..MAX_TRIES {
            let world = self.world().await?;
            let net = match block_for(&world, request) {
                Ok(net) => net,
                Err(_) if world.tick <= since => {
                    self.forget_world();
                    continue;
                }
                Err(error) => return Err(error),
            };
            let operation = Operation::AssignOne {
                address: request.address,
                holder: Holder {
                    handle: request.handle.clone(),
                    attributes: request.attributes.clone(),
                    ..Holder::default()
                },
                owner: world.config.strict_affinity.then(|| owner.clone()),
                max_per_handle: request.max_per_handle,
            };
            match self
                .submit(
                    net,
                    Job {
                        operation,
                        world,
                        since,
                        claim: None,
                    },
                )
                .await?
            {
                Outcome::Missing => {
                    self.claim(&owner, net, request.reserved.as_ref()).await?;
                }
                Outcome::MaxReached(_) => {
                    if let Some(outcome) = self.has_already(request).await? {
                        return outcome;
                    }
                }
                Outcome::WorldChanged => {}
                Outcome::Assigned(_) | Outcome::Released { .. } => return Ok(()),
            }
        }
        Err(Error::TooMuchContention)
    }

    /// What to answer for a handle that may not have more; none if its addresses are only just being written.
    async fn has_already(&self, request: &AssignIp) -> Result<Option<Result<()>>> {
        let (Some(handle), Some(max)) = (&request.handle, request.max_per_handle) else {
            return Ok(None);
        };
        let mut held = self.ips_by_handle(handle).await?;
        held.retain(|address| address.is_ipv4() == request.address.is_ipv4());
        Ok(if held.contains(&request.address) {
            Some(Ok(()))
        } else if held.is_empty() {
            None
        } else {
            Some(Err(Error::HandleHasOther {
                handle: handle.clone(),
                address: request.address,
                max,
            }))
        })
    }
}

/// The block that the address is in, if it may be assigned.
fn block_for(world: &World, request: &AssignIp) -> Result<IpNet> {
    let AssignIp {
        address, used_for, ..
    } = request;
    let pool = pools::enabled_containing(&world.pools, *address).ok_or(Error::NotInPool)?;
    if let Some(used) = *used_for
        && !pool.allowed_uses.contains(&used)
    {
        let allowed: Vec<String> = pool
            .allowed_uses
            .iter()
            .map(|used| format!("{used:?}"))
            .collect();
        return Err(Error::UseNotAllowed {
            address: *address,
            pool: pool.name.clone(),
            used,
            allowed: allowed.join(" "),
        });
    }
    pool.block_of(*address).ok_or(Error::NotInPool)
}
