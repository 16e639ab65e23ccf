//! Fields of resources as what they give for parameters.

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

use super::given::{Given, list};

/// A field that may be set.
pub(super) trait Field {
    /// What it gives, if it is set.
    fn given(&self) -> Option<Given>;
}

/// A value that a field may have.
trait Value {
    fn given(&self) -> Given;
}

impl Field for String {
    fn given(&self) -> Option<Given> {
        (!self.is_empty()).then(|| Given::Text(self.clone()))
    }
}

impl<T: Value> Field for Option<T> {
    fn given(&self) -> Option<Given> {
        self.as_ref().map(Value::given)
    }
}

impl Field for Vec<HealthTimeoutOverride> {
    fn given(&self) -> Option<Given> {
        let text = || list(self, |each| format!("{}={}", each.name, each.timeout));
        (!self.is_empty()).then(|| Given::Text(text()))
    }
}

macro_rules! values {
    ($($type:ty: $value:ident => $given:expr,)*) => {
        $(impl Value for $type {
            fn given(&self) -> Given {
                let $value = self;
                $given
            }
        })*
    };
}
values! {
    bool: value => Given::Bool(*value),
    i64: value => Given::Number(*value),
    GoDuration: value => Given::Seconds(*value),
    Port: value => Given::Ports(vec![value.clone()]),
    Vec<Port>: values => Given::Ports(values.clone()),
    Vec<ProtoPort>: values => Given::FailsafePorts(values.clone()),
    String: value => Given::Text(value.clone()),
    Dscp: value => Given::Text(value.to_string()),
    Vec<String>: values => Given::Text(values.join(",")),
    RouteTableRange: range => Given::Text(format!("{}-{}", range.min, range.max)),
    Vec<RouteTableIdRange>: ranges => {
        Given::Text(list(ranges, |range| format!("{}-{}", range.min, range.max)))
    },
}

macro_rules! word {
    ($($type:ty)*) => {
        $(impl Value for $type {
            fn given(&self) -> Given {
                Given::Text(word(self))
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

impl Value for BTreeMap<String, String> {
    /// Every entry ends in a comma. Calico reads keys from the text, which may be shorter than those of the field.
    fn given(&self) -> Given {
        let mut text = String::new();
        for (key, value) in self {
            text.extend([key, "=", value, ","]);
        }
        Given::Text(text)
    }
}

impl Value for BpfConntrackTimeouts {
    fn given(&self) -> Given {
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
        Given::Text(set.join(","))
    }
}

/// The value of an enum, as the resource spells it.
fn word(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}
