//! How to look around in a demo that keeps running.

use std::io::Write;

use anyhow::Result;

use super::node::{Node, data_file};
use crate::args::{Demo, DemoDataplane};

/// Tells how to get into the node, the pods and the datastore from another terminal.
pub(super) fn tell(args: &Demo, node: &Node, out: &mut impl Write) -> Result<()> {
    let process = std::process::id();
    let enter = if args.own_users {
        "nsenter -U --preserve-credentials -n"
    } else {
        "nsenter -n"
    };
    let rules = match args.dataplane {
        DemoDataplane::Nftables => "nft list ruleset",
        DemoDataplane::Iptables => "iptables-save",
    };
    let file = data_file();
    let file = file.display();
    writeln!(
        out,
        "\nEverything keeps running until Ctrl-C. In another terminal:\n"
    )?;
    writeln!(out, "  {enter} -t {process} {rules}")?;
    writeln!(out, "  {enter} -t {process} ip route")?;
    for pod in &node.pods {
        let (thread, name) = (pod.thread, pod.role.full_name());
        writeln!(out, "  {enter} -t {thread} sh    # in {name}")?;
    }
    writeln!(
        out,
        "\nThe datastore is the demo's alone as long as it runs, so look at a copy:\n"
    )?;
    writeln!(out, "  cp /proc/{process}/root{file} copy.redb")?;
    for what in [
        "get networkpolicy -A",
        "get workloadendpoint -A",
        "why shop/frontend shop/database --protocol TCP --port 5432",
    ] {
        writeln!(
            out,
            "  tortie --datastore embedded --data-file copy.redb {what}"
        )?;
    }
    out.flush()?;
    Ok(())
}
