//! The configuration of `host-local`.

use std::net::IpAddr;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;
use tortie_api::net::{Cidr, parse_cidr, parse_cidr_or_ip, parse_ip};

use super::range::{Range, address, number};
use super::resolver;
use crate::error::{Error, Result};
use crate::plugins::Call;
use crate::result::{Route, read_routes};
use crate::version::CniVersion;

/// Where the files are unless the configuration says otherwise.
const FOLDER: &str = "/var/lib/cni/networks";

/// What an ADD needs to know.
pub(super) struct Settings {
    /// From each of these sets the container gets an address.
    pub(super) sets: Vec<Vec<Range>>,
    /// Addresses that are asked for.
    pub(super) wanted: Vec<IpAddr>,
    pub(super) routes: Vec<Route>,
    /// Where it is kept which addresses are taken.
    pub(super) folder: PathBuf,
    /// A file that says where names are looked up.
    resolver: PathBuf,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Written {
    ipam: Option<Ipam>,
    #[serde(rename = "runtimeConfig")]
    runtime: Runtime,
    args: Arguments,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Ipam {
    #[serde(flatten)]
    range: WrittenRange,
    ranges: Vec<Vec<WrittenRange>>,
    routes: Value,
    #[serde(rename = "dataDir")]
    folder: PathBuf,
    #[serde(rename = "resolvConf")]
    resolver: PathBuf,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct WrittenRange {
    subnet: String,
    range_start: String,
    range_end: String,
    gateway: String,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Runtime {
    ip_ranges: Vec<Vec<WrittenRange>>,
    ips: Vec<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Arguments {
    cni: CniArguments,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct CniArguments {
    ips: Vec<String>,
}

impl Settings {
    pub(super) fn read(call: &Call<'_>) -> Result<Self> {
        let written: Written = call.settings()?;
        let Some(ipam) = written.ipam else {
            return Err(wrong("ipam", "is missing"));
        };
        let environment = call.request.arguments.get("IP").map(str::to_owned);
        let asked = environment
            .into_iter()
            .chain(written.args.cni.ips)
            .chain(written.runtime.ips);
        let mut sets = written.runtime.ip_ranges;
        if !ipam.range.subnet.is_empty() {
            sets.push(vec![ipam.range]);
        }
        sets.extend(ipam.ranges);
        let sets: Vec<Vec<Range>> = sets
            .iter()
            .enumerate()
            .map(|(place, set)| read_set(place, set))
            .collect::<Result<_>>()?;
        check_sets(&sets, call.version)?;
        Ok(Self {
            sets,
            wanted: asked
                .map(|text| read_wanted(&text))
                .collect::<Result<_>>()?,
            routes: read_routes(Some(&ipam.routes))
                .map_err(|error| wrong("ipam.routes", &format!("is wrong: {error}")))?,
            folder: folder(ipam.folder, call),
            resolver: ipam.resolver,
        })
    }

    /// Where it is kept which addresses are taken, whatever else the configuration says.
    pub(super) fn folder_of(call: &Call<'_>) -> PathBuf {
        let written = call.config.pointer("/ipam/dataDir").and_then(Value::as_str);
        folder(written.unwrap_or_default().into(), call)
    }

    /// Where names are looked up, if the configuration names a file with that.
    pub(super) fn dns(&self) -> Result<Option<Value>> {
        if self.resolver.as_os_str().is_empty() {
            return Ok(None);
        }
        resolver::read(&self.resolver).map(Some)
    }
}

fn folder(given: PathBuf, call: &Call<'_>) -> PathBuf {
    let folder = if given.as_os_str().is_empty() {
        FOLDER.into()
    } else {
        given
    };
    folder.join(&call.network)
}

fn read_wanted(text: &str) -> Result<IpAddr> {
    let found = parse_cidr_or_ip(text).map(Cidr::ip);
    found.ok_or_else(|| Error::config(format!("the address `{text}`, which is asked for, is none")))
}

fn read_set(place: usize, written: &[WrittenRange]) -> Result<Vec<Range>> {
    let key = format!("ipam.ranges[{place}]");
    let set: Vec<Range> = written
        .iter()
        .map(|range| read_range(&key, range))
        .collect::<Result<_>>()?;
    let Some(first) = set.first() else {
        return Err(wrong(&key, "is empty"));
    };
    for (place, range) in set.iter().enumerate() {
        if range.first.is_ipv4() != first.first.is_ipv4() {
            return Err(wrong(&key, "has both IPv4 and IPv6"));
        }
        if let Some(other) = set[..place].iter().find(|other| other.overlaps(range)) {
            return Err(wrong(
                &key,
                &format!("has the ranges {other} and {range}, which overlap"),
            ));
        }
    }
    Ok(set)
}

fn read_range(key: &str, written: &WrittenRange) -> Result<Range> {
    let text = &written.subnet;
    let refused = |rule: String| Err(wrong(key, &format!("has the subnet `{text}`, {rule}")));
    let Some(cidr) = parse_cidr(text) else {
        return refused("which is not a CIDR".to_owned());
    };
    let subnet = cidr.network();
    if subnet.addr() != cidr.ip() {
        return refused(format!(
            "which has bits beyond its length: the network is {subnet}"
        ));
    }
    if subnet.prefix_len() > subnet.max_prefix_len() - 2 {
        return refused("which is too small to give out addresses".to_owned());
    }
    let is_ipv4 = subnet.addr().is_ipv4();
    let second = address(number(subnet.addr()) + 1, is_ipv4);
    let broadcast = number(subnet.broadcast());
    let end = address(if is_ipv4 { broadcast - 1 } else { broadcast }, is_ipv4);
    let read = |field: &str, text: &str, usual: IpAddr| match text {
        "" => Ok(usual),
        text => parse_ip(text)
            .filter(|address| field == "gateway" || subnet.contains(address))
            .ok_or_else(|| {
                wrong(
                    key,
                    &format!("has the {field} `{text}`, which is no address of {subnet}"),
                )
            }),
    };
    let range = Range {
        first: read("rangeStart", &written.range_start, second)?,
        last: read("rangeEnd", &written.range_end, end)?,
        gateway: read("gateway", &written.gateway, second)?,
        subnet,
    };
    if number(range.first) > number(range.last) {
        return refused(format!("whose range {range} ends before it begins"));
    }
    Ok(range)
}

fn check_sets(sets: &[Vec<Range>], version: CniVersion) -> Result<()> {
    if sets.is_empty() {
        return Err(wrong(
            "ipam",
            "has no ranges: `subnet` or `ranges` is missing",
        ));
    }
    let of_family = |is_ipv4| {
        sets.iter()
            .filter(|set| set[0].first.is_ipv4() == is_ipv4)
            .count()
    };
    if version < CniVersion::V0_3_0 && (of_family(true) > 1 || of_family(false) > 1) {
        let rule =
            format!("has several sets of one family, of which CNI version {version} has no result");
        return Err(wrong("ipam.ranges", &rule));
    }
    for (place, set) in sets.iter().enumerate() {
        for (other_place, other) in sets[..place].iter().enumerate() {
            if set
                .iter()
                .any(|one| other.iter().any(|two| one.overlaps(two)))
            {
                let rule = format!("has the sets {other_place} and {place}, which overlap");
                return Err(wrong("ipam.ranges", &rule));
            }
        }
    }
    Ok(())
}

fn wrong(key: &str, rule: &str) -> Error {
    Error::config(format!("network configuration: `{key}` {rule}"))
}

#[cfg(test)]
mod tests;
