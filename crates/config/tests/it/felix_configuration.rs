//! Fields of a `FelixConfiguration` mean what their texts mean.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};
use tortie_api::{FelixConfiguration, Kind, Resource};
use tortie_config::{Given, Reason, Sources, from_felix_configuration, resolve};

fn decode(spec: &Value) -> FelixConfiguration {
    let object = json!({"metadata": {"name": "default"}, "spec": spec});
    match Resource::decode_stored(Kind::FelixConfiguration, &object) {
        Ok(Resource::FelixConfiguration(felix)) => *felix,
        other => panic!("{other:?}"),
    }
}

fn sources(global: BTreeMap<String, Given>) -> Sources {
    let mut sources = Sources::default();
    sources.datastore.global = global;
    sources
}

fn fields() -> impl Strategy<Value = Value> {
    let protocol = prop::sample::select(vec!["TCP", "udp", "SCTP", ""]);
    let net = prop::sample::select(vec!["", "10.0.0.1/8", "fd00::1/16", "192.0.2.1", "x"]);
    let open = (protocol, any::<u16>(), net)
        .prop_map(|(protocol, port, net)| json!({"protocol": protocol, "port": port, "net": net}));
    let failsafes = prop::collection::vec(open, 0..3);
    let range = prop_oneof![
        any::<u16>().prop_map(|port| json!(port)),
        (0..100_u16, 100..200_u16).prop_map(|(first, last)| json!(format!("{first}:{last}"))),
        Just(json!("http")),
    ];
    let ranges = prop::collection::vec(range.clone(), 0..3);
    let number = || prop_oneof![any::<i64>(), -2..70_000_i64];
    let time = || {
        prop_oneof![
            -5_000..500_000_i64,
            any::<i32>().prop_map(|n| i64::from(n) * 1_000)
        ]
        .prop_map(|micros| format!("{micros}us"))
    };
    let some = (number(), number(), number(), any::<bool>());
    let times = (time(), time(), time());
    let fields = (some, times, failsafes.clone(), failsafes, ranges, range);
    fields.prop_map(
        |((mask, mtu, port, flag), (refresh, probe, reporting), inbound, outbound, ports, nat)| {
            json!({
                "iptablesMarkMask": mask, "ipipMTU": mtu, "vxlanPort": port, "ipv6Support": flag,
                "removeExternalRoutes": !flag, "routeRefreshInterval": refresh,
                "iptablesLockProbeInterval": probe, "reportingInterval": reporting,
                "failsafeInboundHostPorts": inbound, "failsafeOutboundHostPorts": outbound,
                "kubeNodePortRanges": ports, "natPortRange": nat,
            })
        },
    )
}

proptest! {
    #[test]
    fn fields_mean_what_their_texts_mean(spec in fields()) {
        let typed = from_felix_configuration(&decode(&spec));
        let texts = typed.iter().map(|(name, given)| {
            (name.clone(), Given::Text(given.text().into_owned()))
        });
        let texts: BTreeMap<String, Given> = texts.collect();
        prop_assert_eq!(&typed, &texts);
        let (typed, texts) = (resolve(&sources(typed)), resolve(&sources(texts)));
        prop_assert_eq!(&typed.problems, &texts.problems);
        for (typed, text) in typed.settings.iter().zip(&texts.settings) {
            prop_assert_eq!(typed, text);
            prop_assert_eq!(&typed.value, &text.value, "{}", text.text);
        }
        prop_assert_eq!(typed.config, texts.config);
    }
}

#[test]
fn a_field_that_cannot_be_used_is_named_as_it_is_written() {
    let spec = json!({
        "failsafeInboundHostPorts": [{"protocol": "SCTP", "port": 9, "net": "fd00::/8"}],
        "iptablesMarkMask": 1, "kubeNodePortRanges": ["http"], "ipipMTU": 1400,
    });
    let resolved = resolve(&sources(from_felix_configuration(&decode(&spec))));
    let problems = resolved.problems.iter();
    let problems: Vec<(&str, &str, bool)> = problems
        .inspect(|problem| assert!(matches!(problem.reason, Reason::Invalid { .. })))
        .map(|problem| (&*problem.parameter, &*problem.value, problem.fatal))
        .collect();
    let expected = [
        ("FailsafeInboundHostPorts", "sctp:[fd00::/8]:9", true),
        ("IptablesMarkMask", "1", true),
        ("KubeNodePortRanges", "http", false),
    ];
    assert_eq!(problems, expected);
    assert_eq!(resolved.config.encap.ipip_mtu, 1400);
}
