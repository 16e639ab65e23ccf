//! What follows for rules from the parameters of a node.

use tortie_config::{AllowAction, DenyAction, EndpointToHostAction, Sources, resolve};
use tortie_engine::message::Encapsulation;
use tortie_rules::rule::{Rate, RateUnit};
use tortie_rules::{Config, Dataplane, TooFewMarks};

fn config(parameters: &[(&str, &str)]) -> Result<Config, TooFewMarks> {
    let mut sources = Sources::default();
    for (name, value) in parameters {
        sources.file.insert((*name).to_owned(), (*value).to_owned());
    }
    let resolved = resolve(&sources);
    assert_eq!(resolved.problems, []);
    let encapsulation = Encapsulation::default();
    Config::new(&resolved.config, Dataplane::Iptables, encapsulation)
}

#[test]
fn where_nothing_is_set_it_is_the_default() {
    assert_eq!(config(&[]), Ok(Config::default()));
}

#[test]
fn parameters_reach_the_renderer() {
    let config = config(&[
        ("IptablesFilterAllowAction", "RETURN"),
        ("IptablesFilterDenyAction", "REJECT"),
        ("LogActionRateLimit", "10/minute"),
        ("DefaultEndpointToHostAction", "ACCEPT"),
        ("ServiceLoopPrevention", "Disabled"),
        ("FailsafeInboundHostPorts", "tcp:10.0.0.0/8:22"),
        ("NATPortRange", "1000:2000"),
        ("InterfacePrefix", "eni,cali"),
    ])
    .expect("enough marks");
    assert_eq!(config.filter_allow, AllowAction::Return);
    assert_eq!(config.deny, DenyAction::Reject);
    let rate = Rate {
        count: 10,
        unit: RateUnit::Minute,
    };
    assert_eq!(config.log_rate, Some((rate, 5)));
    assert_eq!(config.endpoint_to_host, EndpointToHostAction::Accept);
    assert_eq!(config.service_loop, None);
    let open: Vec<String> = config
        .failsafe_inbound
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(open, ["tcp:10.0.0.0/8:22"]);
    assert_eq!(
        config.nat_outgoing.ports.map(|ports| ports.last),
        Some(2000)
    );
    assert_eq!(config.workload_prefixes, ["eni", "cali"]);
}

#[test]
fn a_mask_with_too_few_bits_is_refused() {
    let error = config(&[("IptablesMarkMask", "0xf0000000")]).expect_err("four bits");
    assert_eq!(
        error.to_string(),
        "IptablesMarkMask: 0xf0000000 has 4 bits, and rules need 5"
    );
}
