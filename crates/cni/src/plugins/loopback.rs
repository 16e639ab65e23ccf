//! `loopback`: takes a container's loopback interface up.

use serde_json::Value;
use tortie_kernel::link::Link;
use tortie_kernel::route::Socket;

use super::{Call, unlike};
use crate::error::{Code, Error, Result};
use crate::network::{find, kernel};
use crate::result::{Address, CniResult, Interface};

/// The interface, whatever name the runtime gives.
const NAME: &str = "lo";

pub(super) fn add(call: &Call<'_>) -> Result<Value> {
    let link = call.in_container(|socket| {
        set_up(socket, true)?;
        find(socket, NAME)
    })?;
    for address in &link.addresses {
        if !address.addr().is_loopback() {
            let message = format!(
                "`{NAME}` in the container has the address {address}, which is none of the loopback network"
            );
            return Err(Error::new(Code::Kernel, message));
        }
    }
    if let Some(previous) = &call.previous {
        return Ok(previous.value());
    }
    Ok(result(call, &link).to_json(call.version))
}

pub(super) fn del(call: &Call<'_>) -> Result<()> {
    call.in_remaining_container(|socket| set_up(socket, false))
}

pub(super) fn check(call: &Call<'_>) -> Result<()> {
    let link = call.in_container(|socket| find(socket, NAME))?;
    if link.is_up {
        Ok(())
    } else {
        Err(unlike(format!("`{NAME}` in the container is down")))
    }
}

fn set_up(socket: &mut Socket, up: bool) -> Result<()> {
    let index = find(socket, NAME)?.index;
    let done = socket.execute(|batch| batch.set_link_up(index, up));
    let direction = if up { "up" } else { "down" };
    done.map_err(kernel(format!(
        "`{NAME}` in the container cannot be taken {direction}"
    )))
}

/// The first address of each family.
fn result(call: &Call<'_>, link: &Link) -> CniResult {
    let of_family = |is_ipv4| {
        let mut addresses = link.addresses.iter();
        addresses.find(|address| address.addr().is_ipv4() == is_ipv4)
    };
    let addresses = [of_family(true), of_family(false)].into_iter().flatten();
    CniResult {
        interfaces: vec![Interface {
            name: NAME.to_owned(),
            mac: link.mac.map_or(String::new(), |mac| mac.to_string()),
            mtu: None,
            sandbox: call.request.namespace.display().to_string(),
        }],
        ips: addresses
            .map(|address| Address {
                interface: Some(0),
                address: *address,
                gateway: None,
            })
            .collect(),
        ..CniResult::default()
    }
}
