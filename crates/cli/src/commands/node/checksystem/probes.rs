//! What is tried, in network namespaces of its own.

use std::fs;
use std::net::IpAddr;
use std::os::fd::AsFd as _;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use tortie_agent::{Settings, host};
use tortie_convert::Converter;
use tortie_dataplane::Dataplane;
use tortie_engine::Update;
use tortie_kernel::link::{Mac, Vxlan};
use tortie_kernel::namespace::{self, run_in_new};
use tortie_kernel::route::{Batch, Socket};
use tortie_rules::Dataplane as Kind;

use crate::commands::node::enforced;
use crate::commands::report;

/// Resources of one node.
const SAMPLE: &str = include_str!("sample.yaml");

/// The node of the sample.
const NODE: &str = "NODE";

/// Something that is tried.
pub(super) struct Probe {
    pub(super) name: &'static str,
    pub(super) needed_for: &'static str,
    /// What to do if it does not work.
    pub(super) advice: &'static str,
    pub(super) is_required: bool,
    /// The error says what was refused.
    pub(super) run: fn() -> Result<(), String>,
}

pub(super) const ALL: [Probe; 6] = [
    Probe {
        name: "network namespaces and veth",
        needed_for: "connecting pods",
        advice: "load the module `veth`",
        is_required: true,
        run: || in_namespace(veth),
    },
    Probe {
        name: "VXLAN",
        needed_for: "pools with vxlanMode",
        advice: "load the module `vxlan`, or use other pools",
        is_required: false,
        run: || in_namespace(vxlan),
    },
    Probe {
        name: "IPIP",
        needed_for: "pools with ipipMode",
        advice: "load the module `ipip`, or use other pools",
        is_required: false,
        run: || in_namespace(ipip),
    },
    Probe {
        name: "IPv6",
        needed_for: "pods and policies with IPv6 addresses",
        advice: "remove `ipv6.disable=1` from the kernel's command line",
        is_required: false,
        run: || exists("/proc/sys/net/ipv6/conf"),
    },
    Probe {
        name: "connection tracking",
        needed_for: "policies with state, natOutgoing",
        advice: "load the module `nf_conntrack`",
        is_required: true,
        run: || {
            in_namespace(|| Ok(fs::metadata("/proc/sys/net/netfilter/nf_conntrack_max").map(drop)?))
        },
    },
    Probe {
        name: "forwarding can be switched on",
        needed_for: "traffic between pods",
        advice: "mount /proc/sys writable",
        is_required: true,
        run: || in_namespace(|| Ok(fs::write("/proc/sys/net/ipv4/ip_forward", "1")?)),
    },
];

/// Programs a little of everything as an agent would, and compares what the kernel then has.
pub(super) fn dataplane(kind: Kind) -> Result<(), String> {
    in_namespace(|| {
        let enforced =
            enforced::compute(&sample()?, NODE, Settings::default().into(), &move |_| kind)?;
        let drivers = host::drivers(&enforced.config, kind)?;
        let mut dataplane = Dataplane::new(&enforced.rules, kind, drivers, NODE);
        dataplane.set_interfaces(enforced::interfaces(&enforced.config)?);
        for message in enforced.messages {
            dataplane.on_message(message);
        }
        dataplane.apply()?;
        if let Some(refused) = dataplane.refused().first() {
            bail!("{}: {}", refused.owner, refused.reason);
        }
        if let Some(drift) = dataplane.compare()?.first() {
            bail!("{}: {}", drift.object, drift.what);
        }
        Ok(())
    })
}

fn sample() -> Result<Vec<Update>> {
    let mut converter = Converter::new();
    let mut updates = Vec::new();
    for document in tortie_input::parse("sample.yaml", SAMPLE)? {
        let resource = document.decode(None).map_err(anyhow::Error::msg)?;
        updates.extend(converter.set(&resource).updates);
    }
    Ok(updates)
}

/// An error is one line, with its causes.
fn in_namespace(probe: impl FnOnce() -> Result<()> + Send) -> Result<(), String> {
    let probed = run_in_new(probe).context("no network namespace can be made");
    probed
        .and_then(|probed| probed)
        .map_err(|error| report::causes(&error))
}

fn exists(path: &str) -> Result<(), String> {
    if Path::new(path).exists() {
        Ok(())
    } else {
        Err(format!("there is no {path}"))
    }
}

fn veth() -> Result<()> {
    let other = namespace::open(Path::new("/proc/thread-self/ns/net"))?;
    namespace::move_to_new()?;
    change(|batch| batch.create_veth("one", "other", other.as_fd()))
}

fn vxlan() -> Result<()> {
    let local: IpAddr = [192, 0, 2, 1].into();
    let mut socket = Socket::open()?;
    let lower = socket.link("lo")?.context("there is no interface lo")?;
    let vxlan = Vxlan {
        id: 4096,
        port: 4789,
        local,
        lower: lower.index,
        is_learning: false,
    };
    change(|batch| batch.create_vxlan("vxlan.calico", Mac([2, 0, 0, 0, 0, 1]), 1450, &vxlan))
}

/// The module makes a device of this name by itself.
fn ipip() -> Result<()> {
    let mut socket = Socket::open()?;
    if socket.link("tunl0")?.is_some() {
        return Ok(());
    }
    change(|batch| batch.create_ipip("tunl0", 1480))
}

fn change(fill: impl FnOnce(&mut Batch)) -> Result<()> {
    Ok(Socket::open()?.execute(fill)?)
}
