//! A Debian package: an `ar` archive of two others (deb(5)).

use anyhow::Result;

use crate::digest::gzip;
use crate::tree::Tree;

/// The package of these files.
pub(crate) fn package(tree: &Tree, version: &str, arch: &str, time: u64) -> Result<Vec<u8>> {
    let mut control = Tree::default();
    let size = tree.size();
    control.put_text(
        "control",
        &format!(
            "Package: tortie\n\
             Version: {version}\n\
             Architecture: {arch}\n\
             Maintainer: Tortie's authors <tortie@example.invalid>\n\
             Section: net\n\
             Priority: optional\n\
             Installed-Size: {size}\n\
             Recommends: nftables, ipset, iptables\n\
             Suggests: bird2\n\
             Description: network policy and pod networking, with Calico's resources\n \
             Enforces Kubernetes and Calico network policies with nftables or iptables, hands\n \
             out addresses, connects pods across nodes, and says why a connection is allowed\n \
             or denied. Runs on one machine too, with nothing else installed.\n"
        ),
    );
    let mut out = b"!<arch>\n".to_vec();
    member(&mut out, "debian-binary", b"2.0\n", time);
    member(
        &mut out,
        "control.tar.gz",
        &gzip(&control.tar(time)?)?,
        time,
    );
    member(&mut out, "data.tar.gz", &gzip(&tree.tar(time)?)?, time);
    Ok(out)
}

fn member(out: &mut Vec<u8>, name: &str, bytes: &[u8], time: u64) {
    let size = bytes.len();
    let header = format!(
        "{name:<16}{time:<12}{:<6}{:<6}{:<8}{size:<10}`\n",
        0, 0, "100644"
    );
    out.extend(header.as_bytes());
    out.extend(bytes);
    if !size.is_multiple_of(2) {
        out.push(b'\n');
    }
}
