//! What types alone do not say.

use ipnet::IpNet;

use super::{DatastoreType, Encapsulation, Pool, Values, ValuesError};

/// Says what is wrong first.
pub(super) fn check(values: &Values) -> Result<(), ValuesError> {
    if !values.ipv4.enabled && !values.ipv6.enabled {
        return Err(wrong("ipv4.enabled", "pods need IPv4, IPv6 or both"));
    }
    pool("ipv4", &values.ipv4, 20..=32, |net| {
        matches!(net, IpNet::V4(_))
    })?;
    pool("ipv6", &values.ipv6, 116..=128, |net| {
        matches!(net, IpNet::V6(_))
    })?;
    let is_ipip = |pool: &Pool| {
        use Encapsulation::{Ipip, IpipCrossSubnet};
        matches!(pool.encapsulation, Ipip | IpipCrossSubnet)
    };
    if is_ipip(&values.ipv6) {
        return Err(wrong(
            "ipv6.encapsulation",
            "IPIP is for IPv4: expected VXLAN, VXLANCrossSubnet or None",
        ));
    }
    if values.datastore.r#type == DatastoreType::Etcd && values.datastore.etcd.endpoints.is_empty()
    {
        return Err(wrong(
            "datastore.etcd.endpoints",
            "expected URLs, since datastore.type is etcd",
        ));
    }
    for (field, folder) in [
        ("cni.binFolder", &values.cni.bin_folder),
        ("cni.configFolder", &values.cni.config_folder),
    ] {
        let is_plain = folder.starts_with('/') && !folder.split('/').any(|part| part == "..");
        if !is_plain {
            return Err(wrong(
                field,
                format!("`{folder}` is not the full path of a folder"),
            ));
        }
    }
    if !(1..=100).contains(&values.node.max_unavailable) {
        return Err(wrong("node.maxUnavailable", "expected 1 to 100"));
    }
    if values.metrics.enabled && values.metrics.port == 0 {
        return Err(wrong("metrics.port", "expected a port"));
    }
    Ok(())
}

fn pool(
    family: &str,
    pool: &Pool,
    sizes: std::ops::RangeInclusive<u8>,
    is_right: impl Fn(&IpNet) -> bool,
) -> Result<(), ValuesError> {
    let size = pool.block_size;
    if !sizes.contains(&size) {
        let (least, most) = sizes.into_inner();
        let reason = format!("{size} is no prefix length of blocks: expected {least} to {most}");
        return Err(wrong(&format!("{family}.blockSize"), reason));
    }
    if pool.pod_cidr.is_empty() {
        return Ok(());
    }
    let field = format!("{family}.podCidr");
    let range: IpNet = match pool.pod_cidr.parse() {
        Ok(range) if is_right(&range) => range,
        _ => {
            return Err(wrong(
                &field,
                format!("`{}` is no network of this IP version", pool.pod_cidr),
            ));
        }
    };
    if range.prefix_len() > size {
        let reason =
            format!("{range} is smaller than a block of it, which has the prefix length {size}");
        return Err(wrong(&field, reason));
    }
    Ok(())
}

fn wrong(field: &str, reason: impl Into<String>) -> ValuesError {
    ValuesError::Field {
        field: field.to_owned(),
        reason: reason.into(),
    }
}
