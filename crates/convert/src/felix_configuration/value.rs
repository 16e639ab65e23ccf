//! Values of fields in the text form of parameters.

use std::collections::BTreeMap;

use serde::Serialize;
use tortie_api::felix_configuration::{
    AwsSrcDstCheckOption, BpfAttachOption, BpfConnectTimeLbType, BpfConntrackMode,
    BpfConntrackTimeouts, BpfHostNetworkedNatType, BpfJitHardeningType, BpfOverlayHostSourceIpType,
    FloatingIpType, FlowLogsPolicyEvaluationModeType, HealthTimeoutOverride, IptablesBackend,
    IstioAmbientMode, LocalSubnetL2ReachabilityMode, NatOutgoingExclusionsType,
    NfTablesFlowTableOffload, NfTablesMode, PrometheusMetricsClientAuthType, ProtoPort,
    RouteTableIdRange, RouteTableRange, WindowsManageFirewallRulesMode,
};
use tortie_api::scalar::{Dscp, GoDuration, Port};

/// A field that may be set.
pub(super) trait Field {
    /// Its text, if it is set.
    fn text(&self) -> Option<String>;
}

/// A value that a field may have.
trait Value {
    fn text(&self) -> String;
}

impl Field for String {
    fn text(&self) -> Option<String> {
        Some(self.clone()).filter(|text| !text.is_empty())
    }
}

impl<T: Value> Field for Option<T> {
    fn text(&self) -> Option<String> {
        self.as_ref().map(Value::text)
    }
}

impl Field for Vec<HealthTimeoutOverride> {
    fn text(&self) -> Option<String> {
        (!self.is_empty()).then(|| list(self, |each| format!("{}={}", each.name, each.timeout)))
    }
}

macro_rules! display {
    ($($type:ty)*) => {
        $(impl Value for $type {
            fn text(&self) -> String {
                self.to_string()
            }
        })*
    };
}
display! { bool i64 String Port Dscp }

macro_rules! word {
    ($($type:ty)*) => {
        $(impl Value for $type {
            fn text(&self) -> String {
                word(self)
            }
        })*
    };
}
word! {
    AwsSrcDstCheckOption BpfAttachOption BpfConnectTimeLbType BpfConntrackMode BpfHostNetworkedNatType
    BpfJitHardeningType BpfOverlayHostSourceIpType FloatingIpType FlowLogsPolicyEvaluationModeType IptablesBackend
    IstioAmbientMode LocalSubnetL2ReachabilityMode NatOutgoingExclusionsType NfTablesFlowTableOffload NfTablesMode
    PrometheusMetricsClientAuthType WindowsManageFirewallRulesMode
}

impl Value for GoDuration {
    fn text(&self) -> String {
        decimal(self.as_nanos(), 9)
    }
}

impl Value for Vec<String> {
    fn text(&self) -> String {
        self.join(",")
    }
}

impl Value for Vec<Port> {
    fn text(&self) -> String {
        list(self, ToString::to_string)
    }
}

impl Value for BTreeMap<String, String> {
    /// Every entry ends in a comma.
    fn text(&self) -> String {
        let mut text = String::new();
        for (key, value) in self {
            text.extend([key, "=", value, ","]);
        }
        text
    }
}

impl Value for Vec<ProtoPort> {
    fn text(&self) -> String {
        // An empty text would mean that the parameter is not set.
        if self.is_empty() {
            return "none".to_owned();
        }
        list(self, |each| {
            let (protocol, port) = (each.protocol.to_lowercase(), each.port);
            match each.net.as_str() {
                "" => format!("{protocol}:{port}"),
                net if net.contains(':') => format!("{protocol}:[{net}]:{port}"),
                net => format!("{protocol}:{net}:{port}"),
            }
        })
    }
}

impl Value for RouteTableRange {
    fn text(&self) -> String {
        format!("{}-{}", self.min, self.max)
    }
}

impl Value for Vec<RouteTableIdRange> {
    fn text(&self) -> String {
        list(self, |range| format!("{}-{}", range.min, range.max))
    }
}

impl Value for BpfConntrackTimeouts {
    fn text(&self) -> String {
        let timeouts = [
            ("CreationGracePeriod", &self.creation_grace_period),
            ("TCPSynSent", &self.tcp_syn_sent),
            ("TCPEstablished", &self.tcp_established),
            ("TCPFinsSeen", &self.tcp_fins_seen),
            ("TCPResetSeen", &self.tcp_reset_seen),
            ("UDPTimeout", &self.udp_timeout),
            ("GenericTimeout", &self.generic_timeout),
            ("ICMPTimeout", &self.icmp_timeout),
        ];
        let set: Vec<String> = timeouts
            .into_iter()
            .filter_map(|(name, value)| Some(format!("{name}={}", value.as_ref()?)))
            .collect();
        set.join(",")
    }
}

/// A duration in milliseconds.
pub(super) fn milliseconds(duration: GoDuration) -> String {
    decimal(duration.as_nanos(), 6)
}

/// The value of an enum, as the resource spells it.
fn word(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}

fn list<T>(items: &[T], text: impl Fn(&T) -> String) -> String {
    let texts: Vec<String> = items.iter().map(text).collect();
    texts.join(",")
}

/// A whole number with a decimal point before its last digits, and without zeros at the end.
fn decimal(number: i64, digits: usize) -> String {
    let sign = if number < 0 { "-" } else { "" };
    let padded = format!("{:0>1$}", number.unsigned_abs(), digits + 1);
    let (whole, fraction) = padded.split_at(padded.len() - digits);
    let text = format!("{sign}{whole}.{fraction}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
