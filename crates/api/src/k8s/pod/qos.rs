//! Traffic limits of a pod, from its annotations.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use crate::k8s::{note_annotation, quantity};
use crate::kinds::workload_endpoint::QosControls;
use crate::problem::Problems;
use crate::scalar::Dscp;

const BANDWIDTH: RangeInclusive<i64> = 1_000..=1_000_000_000_000_000;
const BURST: RangeInclusive<i64> = 1_000..=34_359_738_360;
/// A little above [`BANDWIDTH`] at both ends, because the peak rate must exceed the bandwidth.
const PEAK_RATE: RangeInclusive<i64> = 1_010..=1_010_000_000_000_000;
const MIN_BURST: RangeInclusive<i64> = 1_000..=100_000_000;
/// The kernel's `XT_LIMIT_SCALE` is the upper end.
const PACKETS: RangeInclusive<i64> = 1..=10_000;
const CONNECTIONS: RangeInclusive<i64> = 1..=4_294_967_295;

/// Bits, where a bandwidth is set.
const DEFAULT_BURST: i64 = 4 << 30;
/// Packets, where a packet rate is set.
const DEFAULT_PACKET_BURST: i64 = 5;

/// The limits of one direction.
#[derive(Debug, Default)]
struct Limits {
    bandwidth: i64,
    burst: i64,
    peak_rate: i64,
    min_burst: i64,
    packet_rate: i64,
    packet_burst: i64,
    max_connections: i64,
}

/// The limits that the annotations ask for, if any. What cannot be read or makes no sense is left out, and values out
/// of range are moved into it; both are noted.
pub(super) fn controls(
    annotations: &BTreeMap<String, String>,
    problems: &mut Problems,
) -> Option<QosControls> {
    let ingress = limits(annotations, "ingress", problems);
    let egress = limits(annotations, "egress", problems);
    let controls = QosControls {
        ingress_bandwidth: ingress.bandwidth,
        ingress_burst: ingress.burst,
        ingress_peakrate: ingress.peak_rate,
        ingress_minburst: ingress.min_burst,
        ingress_packet_rate: ingress.packet_rate,
        ingress_packet_burst: ingress.packet_burst,
        ingress_max_connections: ingress.max_connections,
        egress_bandwidth: egress.bandwidth,
        egress_burst: egress.burst,
        egress_peakrate: egress.peak_rate,
        egress_minburst: egress.min_burst,
        egress_packet_rate: egress.packet_rate,
        egress_packet_burst: egress.packet_burst,
        egress_max_connections: egress.max_connections,
        dscp: dscp(annotations, problems),
    };
    (controls != QosControls::default()).then_some(controls)
}

fn limits(
    annotations: &BTreeMap<String, String>,
    direction: &str,
    problems: &mut Problems,
) -> Limits {
    let mut read = |key: String, range: RangeInclusive<i64>| {
        annotations
            .get(&key)
            .map(|text| quantity_in(&key, text, &range, problems))
    };
    let calico = |name: &str| format!("qos.projectcalico.org/{direction}{name}");
    // The second one overrides the first, even where it cannot be read.
    let kubernetes = read(format!("kubernetes.io/{direction}-bandwidth"), BANDWIDTH);
    let mut limits = Limits {
        bandwidth: read(calico("Bandwidth"), BANDWIDTH)
            .or(kubernetes)
            .unwrap_or_default(),
        burst: read(calico("Burst"), BURST).unwrap_or_default(),
        peak_rate: read(calico("Peakrate"), PEAK_RATE).unwrap_or_default(),
        min_burst: read(calico("Minburst"), MIN_BURST).unwrap_or_default(),
        packet_rate: read(calico("PacketRate"), PACKETS).unwrap_or_default(),
        packet_burst: read(calico("PacketBurst"), PACKETS).unwrap_or_default(),
        max_connections: read(calico("MaxConnections"), CONNECTIONS).unwrap_or_default(),
    };
    let mut require = |value: &mut i64, name: &str, holds: bool, rule: &str| {
        if *value != 0 && !holds {
            note_annotation(problems, &calico(name), *value, rule);
            *value = 0;
        }
    };
    let has_bandwidth = limits.bandwidth != 0;
    require(
        &mut limits.burst,
        "Burst",
        has_bandwidth,
        "needs a bandwidth; it is ignored",
    );
    let is_above = has_bandwidth && limits.peak_rate > limits.bandwidth;
    require(
        &mut limits.peak_rate,
        "Peakrate",
        is_above,
        "must be above the bandwidth; it is ignored",
    );
    let has_peak_rate = limits.peak_rate != 0;
    require(
        &mut limits.min_burst,
        "Minburst",
        has_peak_rate,
        "needs a peak rate; it is ignored",
    );
    let has_packet_rate = limits.packet_rate != 0;
    require(
        &mut limits.packet_burst,
        "PacketBurst",
        has_packet_rate,
        "needs a packet rate; it is ignored",
    );
    if has_bandwidth && limits.burst == 0 {
        limits.burst = DEFAULT_BURST;
    }
    if has_packet_rate && limits.packet_burst == 0 {
        limits.packet_burst = DEFAULT_PACKET_BURST;
    }
    limits
}

/// The quantity, moved into the range; 0 if the text is not one.
fn quantity_in(key: &str, text: &str, range: &RangeInclusive<i64>, problems: &mut Problems) -> i64 {
    let (low, high) = (*range.start(), *range.end());
    let Some(value) = quantity::parse(text) else {
        note_annotation(
            problems,
            key,
            text,
            "must be a quantity such as 10M; it is ignored",
        );
        return 0;
    };
    let clamped = value.clamp(low, high);
    if clamped != value {
        note_annotation(
            problems,
            key,
            text,
            &format!("must be from {low} to {high}; {clamped} is used"),
        );
    }
    clamped
}

fn dscp(annotations: &BTreeMap<String, String>, problems: &mut Problems) -> Option<Dscp> {
    const KEY: &str = "qos.projectcalico.org/dscp";
    let text = annotations.get(KEY)?;
    // Names are kept in upper case, unless they have spaces around them.
    let name = if text.trim() == text {
        text.to_ascii_uppercase()
    } else {
        text.clone()
    };
    let dscp = name
        .parse()
        .ok()
        .filter(|dscp: &Dscp| dscp.value().is_some());
    if dscp.is_none() {
        note_annotation(
            problems,
            KEY,
            text,
            "must be 0 to 63 or a name such as EF; it is ignored",
        );
    }
    dscp
}
