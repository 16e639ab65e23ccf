//! `bandwidth`: limits how fast a container receives and sends.
//!
//! What it receives leaves the node's end of its interface through a bucket of tokens. What it sends arrives there, and is
//! sent through a device of its own first, which has such a bucket too.

use serde::Deserialize;
use serde_json::Value;
use tortie_kernel::link::Link;
use tortie_kernel::qdisc::TokenBucket;
use tortie_kernel::route::Socket;

use super::{Call, owner, sandbox, unlike};
use crate::error::{Error, Result};
use crate::network::{delete, find, kernel};
use crate::result::Interface;
use crate::version::CniVersion;

/// Names of devices begin so, and go on with a hash, as long as the kernel lets them be.
const PREFIX: &str = "bwp";
const HASH_LETTERS: usize = 12;

/// How long packets may wait at a limit.
const LATENCY_MILLISECONDS: u64 = 25;

const MICROSECONDS: f64 = 1e6;

/// Limits, in bits and bits a second; none where they are 0.
#[derive(Deserialize, Default, Clone, Copy, PartialEq, Eq)]
#[serde(default, rename_all = "camelCase")]
struct Limits {
    ingress_rate: u64,
    ingress_burst: u64,
    egress_rate: u64,
    egress_burst: u64,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Written {
    #[serde(flatten)]
    limits: Limits,
    #[serde(rename = "runtimeConfig")]
    runtime: Runtime,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Runtime {
    bandwidth: Limits,
}

/// What is to be limited.
struct Settings {
    /// What the container receives.
    received: Option<TokenBucket>,
    sent: Option<TokenBucket>,
}

pub(super) fn add(call: &Call<'_>) -> Result<Value> {
    let settings = Settings::read(call)?;
    let previous = call.previous()?;
    if settings.is_empty() {
        return Ok(previous.value());
    }
    let mut socket = sandbox::open()?;
    let host = node_end(call, &mut socket)?;
    if let Some(bucket) = &settings.received {
        limit(&mut socket, &host, bucket)?;
    }
    let Some(bucket) = &settings.sent else {
        return Ok(previous.value());
    };
    let device = divert(call, &mut socket, &host)?;
    limit(&mut socket, &device, bucket)?;
    Ok(previous.with_interface(&Interface {
        name: device.name,
        mac: device.mac.map_or(String::new(), |mac| mac.to_string()),
        ..Interface::default()
    }))
}

/// The rest has gone with the node's end of the interface, or goes with it.
pub(super) fn del(call: &Call<'_>) -> Result<()> {
    delete(&mut sandbox::open()?, &device_name(call)).map(drop)
}

pub(super) fn check(call: &Call<'_>) -> Result<()> {
    let settings = Settings::read(call)?;
    call.previous()?;
    if settings.is_empty() {
        return Ok(());
    }
    let mut socket = sandbox::open()?;
    if let Some(bucket) = &settings.received {
        let host = node_end(call, &mut socket)?;
        check_limit(&mut socket, &host, bucket)?;
    }
    if let Some(bucket) = &settings.sent {
        let device =
            find(&mut socket, &device_name(call)).map_err(|error| unlike(error.to_string()))?;
        check_limit(&mut socket, &device, bucket)?;
    }
    Ok(())
}

pub(super) fn gc(call: &Call<'_>) -> Result<()> {
    let network = owner::of_network(&call.network);
    let mut socket = sandbox::open()?;
    let links = socket
        .links()
        .map_err(kernel("the node's interfaces cannot be read"))?;
    for link in links.iter().filter(|link| link.name.starts_with(PREFIX)) {
        let Some(rest) = link.alias.strip_prefix(&network) else {
            continue;
        };
        let (container, interface) = rest.split_once(' ').unwrap_or((rest, ""));
        if !call.is_valid(container, Some(interface))? {
            tracing::info!(
                interface = link.name,
                container,
                "A device of a container that is gone is deleted"
            );
            delete(&mut socket, &link.name)?;
        }
    }
    Ok(())
}

pub(super) fn check_config(call: &Call<'_>) -> Result<()> {
    Settings::read(call).map(drop)
}

impl Settings {
    fn read(call: &Call<'_>) -> Result<Self> {
        if call.version < CniVersion::V0_3_0 {
            let message = format!(
                "network configuration: `cniVersion` is {}: this plugin needs results with interfaces, which are there since 0.3.0",
                call.version
            );
            return Err(Error::new(crate::error::Code::IncompatibleVersion, message));
        }
        let written: Written = call.settings()?;
        let limits = if written.limits == Limits::default() {
            written.runtime.bandwidth
        } else {
            written.limits
        };
        Ok(Self {
            received: bucket("ingress", limits.ingress_rate, limits.ingress_burst)?,
            sent: bucket("egress", limits.egress_rate, limits.egress_burst)?,
        })
    }

    fn is_empty(&self) -> bool {
        self.received.is_none() && self.sent.is_none()
    }
}

/// The bucket for a rate and a burst in bits, with the kernel's numbers as the CNI project's plugin computes them.
fn bucket(direction: &str, rate: u64, burst: u64) -> Result<Option<TokenBucket>> {
    let refused = |rule: &str| {
        let message = format!(
            "network configuration: `{direction}Rate` is {rate} and `{direction}Burst` is {burst}: {rule}"
        );
        Err(Error::config(message))
    };
    match (rate, burst) {
        (0, 0) => return Ok(None),
        (0, _) | (_, 0) => return refused("where one is set, the other must be too"),
        (..8, _) => return refused("the rate is less than a byte a second"),
        _ => {}
    }
    let rate = rate / 8;
    let Some(burst) = u32::try_from(burst / 8)
        .ok()
        .filter(|burst| *burst < u32::MAX)
    else {
        return refused("the burst must be less than 4 GiB");
    };
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "more than the kernel counts is as much as it counts"
    )]
    let duration = (f64::from(burst) * MICROSECONDS / rate as f64) as u32;
    let waiting = rate.saturating_mul(LATENCY_MILLISECONDS) / 1000;
    let limit = waiting.saturating_add(burst.into());
    Ok(Some(TokenBucket {
        rate,
        limit: u32::try_from(limit).unwrap_or(u32::MAX),
        buffer: TokenBucket::lasting(duration),
    }))
}

/// The name that the CNI project's plugin gives to the device, so that either removes what the other made.
fn device_name(call: &Call<'_>) -> String {
    let container = &call.request.container_id;
    let hash = owner::hash(&format!("{}{container}", call.network), HASH_LETTERS);
    format!("{PREFIX}{hash}")
}

/// The node's end of the container's interface.
fn node_end(call: &Call<'_>, socket: &mut Socket) -> Result<Link> {
    let name = &call.request.interface;
    let inside = call.in_container(|socket| find(socket, name))?;
    let failed = |why: &str| {
        Err(Error::config(format!(
            "`{name}` in the container {why}: only pairs of interfaces can be limited"
        )))
    };
    let Some(index) = inside.lower else {
        return failed("has no other end");
    };
    let found = socket
        .link_at(index)
        .map_err(kernel("the node's interfaces cannot be read"))?;
    let Some(link) = found else {
        return failed("has its other end not on this node");
    };
    let known = &call.previous()?.result.interfaces;
    if known
        .iter()
        .any(|known| known.sandbox.is_empty() && known.name == link.name)
    {
        Ok(link)
    } else {
        failed(&format!(
            "has the other end `{}`, of which `prevResult` does not tell",
            link.name
        ))
    }
}

fn limit(socket: &mut Socket, link: &Link, bucket: &TokenBucket) -> Result<()> {
    let set = socket.execute(|batch| batch.replace_token_bucket(link.index, bucket));
    set.map_err(kernel(format!(
        "`{}` cannot be limited: has the kernel the qdisc tbf?",
        link.name
    )))
}

/// Lets what the container sends pass through a device of its own.
fn divert(call: &Call<'_>, socket: &mut Socket, host: &Link) -> Result<Link> {
    let name = device_name(call);
    let request = call.request;
    // What an ADD before this one left may be for an interface that is gone.
    delete(socket, &name)?;
    let owner = owner::text(&call.network, &request.container_id, &request.interface);
    let made = socket.execute(|batch| batch.create_ifb(&name, host.mtu));
    made.map_err(kernel(format!(
        "the device `{name}` cannot be made: has the kernel devices of the kind ifb?"
    )))?;
    let device = find(socket, &name)?;
    let redirect = |socket: &mut Socket| {
        socket.execute(|batch| batch.set_link_alias(device.index, &owner))?;
        let removed = socket.execute(|batch| batch.delete_ingress(host.index));
        // There is mostly nothing to remove.
        drop(removed);
        socket.execute(|batch| batch.add_ingress(host.index))?;
        socket.execute(|batch| batch.redirect_arrivals(host.index, device.index))
    };
    if let Err(error) = redirect(socket) {
        delete(socket, &name)?;
        let message = format!(
            "what arrives by `{}` cannot be diverted: has the kernel the filter u32 and the action mirred?",
            host.name
        );
        return Err(kernel(message)(error));
    }
    Ok(device)
}

fn check_limit(socket: &mut Socket, link: &Link, bucket: &TokenBucket) -> Result<()> {
    let qdiscs = socket.qdiscs(link.index).map_err(kernel(format!(
        "the queue of `{}` cannot be read",
        link.name
    )))?;
    let found = qdiscs.iter().find(|qdisc| qdisc.is_root);
    if found.and_then(|qdisc| qdisc.bucket) == Some(*bucket) {
        return Ok(());
    }
    let message = format!(
        "`{}` is not limited to {} bytes a second, with {} that may wait",
        link.name, bucket.rate, bucket.limit
    );
    Err(unlike(message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_the_kernels() {
        let found = bucket("ingress", 8_000_000, 80_000).expect("limits");
        let expected = TokenBucket {
            rate: 1_000_000,
            limit: 35_000,
            buffer: 156_250,
        };
        assert_eq!(found, Some(expected));
        assert_eq!(bucket("ingress", 0, 0).expect("limits"), None);
        let huge = bucket("ingress", u64::MAX, 8).expect("limits");
        assert_eq!(huge.map(|huge| huge.limit), Some(u32::MAX));
    }

    #[test]
    fn what_limits_nothing_is_refused() {
        for (rate, burst) in [(0, 1), (1, 0), (7, 8), (8, u64::MAX)] {
            assert!(bucket("egress", rate, burst).is_err(), "{rate} {burst}");
        }
    }
}
