//! `tuning`: changes settings of the kernel and of an interface in a container's namespace.
//!
//! What the interface was like before is kept in a file, in the form of the CNI project's plugin, until DEL.

mod allowed;
mod before;
mod config;

use serde_json::Value;
use tortie_kernel::link::Link;
use tortie_kernel::route::{self, Batch, Socket};
use tortie_kernel::sysctl::Sysctl;

use self::before::Before;
use self::config::{Changes, Settings};
use super::{Call, unlike};
use crate::error::{Error, Result};
use crate::network::{find, kernel};

pub(super) fn add(call: &Call<'_>) -> Result<Value> {
    let settings = Settings::read(call)?;
    allowed::check(&settings.sysctls)?;
    let previous = call.previous()?;
    let name = &call.request.interface;
    call.in_container(|socket| {
        for (key, value) in &settings.sysctls {
            let set = sysctl(key, name)?.write(value);
            set.map_err(kernel(format!("the setting `{key}` cannot be made")))?;
        }
        if settings.changes == Changes::default() {
            return Ok(());
        }
        let link = find(socket, name)?;
        Before::of(&link, &settings.changes).keep(&settings.file)?;
        change(socket, &link, &settings.changes)
    })?;
    Ok(match settings.changes.mac {
        Some(mac) => previous.with_mac(name, &mac.to_string()),
        None => previous.value(),
    })
}

/// Makes the interface as it was. One that is gone is no error: with it, nothing is left to be undone.
pub(super) fn del(call: &Call<'_>) -> Result<()> {
    let file = Settings::file_of(call);
    let Some(before) = Before::read(&file)? else {
        return Ok(());
    };
    call.in_remaining_container(|socket| {
        let name = &call.request.interface;
        let link = socket
            .link(name)
            .map_err(kernel(format!("`{name}` cannot be read")))?;
        match link {
            Some(link) => change(socket, &link, &before.changes()),
            None => Ok(()),
        }
    })?;
    Before::forget(&file)
}

pub(super) fn check(call: &Call<'_>) -> Result<()> {
    let settings = Settings::read(call)?;
    call.previous()?;
    let name = &call.request.interface;
    let problems = call.in_container(|socket| {
        let mut problems = Vec::new();
        for (key, wanted) in &settings.sysctls {
            let found = sysctl(key, name)?.read();
            let found = found.map_err(kernel(format!("the setting `{key}` cannot be read")))?;
            if found != *wanted {
                problems.push(format!("`{key}` is {found}, not {wanted}"));
            }
        }
        let link = find(socket, name)?;
        problems.extend(differences(&link, &settings.changes));
        Ok(problems)
    })?;
    if problems.is_empty() {
        Ok(())
    } else {
        Err(unlike(problems.join("; ")))
    }
}

pub(super) fn check_config(call: &Call<'_>) -> Result<()> {
    let settings = Settings::read(call)?;
    for (key, _) in &settings.sysctls {
        sysctl(key, &call.request.interface)?;
    }
    Ok(())
}

/// The setting that a configuration names with dots or slashes, for all interfaces or for the container's.
fn sysctl(key: &str, interface: &str) -> Result<Sysctl> {
    // Names of interfaces may have dots.
    let path = key.replace('.', "/").replacen("IFNAME", interface, 1);
    Sysctl::of_network(&path).map_err(|error| {
        Error::config(format!(
            "network configuration: `sysctl` has the key `{key}`: {error}"
        ))
    })
}

fn change(socket: &mut Socket, link: &Link, changes: &Changes) -> Result<()> {
    let name = &link.name;
    let mut one = |what: &str, fill: &dyn Fn(&mut Batch)| -> Result<()> {
        let done: route::Result<()> = socket.execute(fill);
        done.map_err(kernel(format!(
            "the {what} of `{name}` in the container cannot be changed"
        )))
    };
    let index = link.index;
    if let Some(mac) = changes.mac {
        one("hardware address", &|batch| batch.set_link_mac(index, mac))?;
    }
    if let Some(on) = changes.promiscuous {
        one("promiscuous mode", &|batch| {
            batch.set_link_promiscuous(index, on);
        })?;
    }
    if let Some(mtu) = changes.mtu {
        one("MTU", &|batch| batch.set_link_mtu(index, mtu))?;
    }
    if let Some(on) = changes.all_multicast {
        one("reception of all groups", &|batch| {
            batch.set_link_all_multicast(index, on);
        })?;
    }
    if let Some(length) = changes.queue_length {
        one("queue's length", &|batch| {
            batch.set_link_queue_length(index, length);
        })?;
    }
    Ok(())
}

fn differences(link: &Link, changes: &Changes) -> Vec<String> {
    let name = &link.name;
    let mut problems = Vec::new();
    if let Some(mac) = changes.mac.filter(|mac| link.mac != Some(*mac)) {
        problems.push(format!("the hardware address of `{name}` is not {mac}"));
    }
    if let Some(on) = changes.promiscuous.filter(|on| link.is_promiscuous != *on) {
        problems.push(format!("that `{name}` is promiscuous is not {on}"));
    }
    if let Some(mtu) = changes.mtu.filter(|mtu| link.mtu != *mtu) {
        problems.push(format!("the MTU of `{name}` is {}, not {mtu}", link.mtu));
    }
    if let Some(on) = changes
        .all_multicast
        .filter(|on| link.takes_all_multicast != *on)
    {
        problems.push(format!(
            "that `{name}` takes packets to all groups is not {on}"
        ));
    }
    if let Some(length) = changes
        .queue_length
        .filter(|length| link.queue_length != *length)
    {
        problems.push(format!(
            "the queue's length of `{name}` is {}, not {length}",
            link.queue_length
        ));
    }
    problems
}
