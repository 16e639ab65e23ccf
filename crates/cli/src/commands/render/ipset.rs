//! The sets as `ipset restore` reads them.

use std::fmt::Write as _;

use tortie_dataplane::{Batch, SetKind};
use tortie_engine::message::Member;
use tortie_rules::IpVersion;

use super::members;

/// Writes all sets, each with these members and no others.
pub(super) fn write(batch: &Batch, version: IpVersion, capacity: u32, out: &mut String) {
    let family = match version {
        IpVersion::V4 => "inet",
        IpVersion::V6 => "inet6",
    };
    for set in &batch.sets {
        let name = &set.name;
        let kind = match set.kind {
            SetKind::Addresses => "hash:ip",
            SetKind::Networks => "hash:net",
            SetKind::Ports => "hash:ip,port",
        };
        put(
            out,
            format_args!("create {name} {kind} family {family} maxelem {capacity} -exist\n"),
        );
        put(out, format_args!("flush {name}\n"));
        for member in members(&set.change) {
            match member {
                // The kernel has no place for all addresses at once.
                Member::Net(net) if net.prefix_len() == 0 => {
                    for half in net.subnets(1).into_iter().flatten() {
                        put(out, format_args!("add {name} {half} -exist\n"));
                    }
                }
                member => put(out, format_args!("add {name} {member} -exist\n")),
            }
        }
    }
}

fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a string takes any text");
}
