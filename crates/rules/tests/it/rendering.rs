//! Calico's own renderings: the vectors of `iptables.json` to the letter, and `nftables.json` in all but what the
//! design says is different.

mod compare;
mod input;

use std::collections::BTreeMap;

use serde_json::Value;
use tortie_rules::{Dataplane, IpVersion, iptables, nftables};

use compare::Rendered;

/// Chains by table and name, each with its rules and their comments.
type Chains = BTreeMap<(String, String), Vec<Rendered>>;

#[test]
fn iptables_rules_are_calicos_to_the_letter() {
    let cases = tortie_testkit::vectors("iptables.json");
    let mut failures = Vec::new();
    for (index, case) in cases.iter().enumerate() {
        let mut expected = iptables_chains(case);
        let mut actual = Chains::new();
        let case_input = input::read(&case["input"], Dataplane::Iptables);
        for chain in &case_input.chains {
            let lines = iptables::lines(chain, case_input.ip_version);
            actual.insert(
                (chain.table.name().to_owned(), chain.name.to_string()),
                lines
                    .into_iter()
                    .map(|line| Rendered::line(line.body))
                    .collect(),
            );
        }
        for hook in case_input.hooks.iter().filter(|hook| !hook.last.is_empty()) {
            if hook.chain != "FORWARD" {
                continue;
            }
            let lines = iptables::appended(hook.chain, &hook.last, case_input.ip_version);
            actual.insert(
                (hook.table.name().to_owned(), hook.chain.to_owned()),
                lines
                    .into_iter()
                    .map(|line| Rendered::line(line.body))
                    .collect(),
            );
        }
        for refused in expected.extract_if(.., |_, rules| rules.iter().any(is_refused)) {
            actual.remove(&refused.0);
        }
        failures.extend(compare::exact(index, case, &expected, &actual));
    }
    assert!(cases.len() >= 90, "{} cases", cases.len());
    compare::report(&failures);
}

/// Whether iptables does not take a rule of Calico's: one that asks for types of ICMP in packets of something else.
fn is_refused(rendered: &Rendered) -> bool {
    let rule = &rendered.rule;
    rule.contains("-p icmpv6 ") && rule.contains("-m icmp ")
        || rule.contains("-p icmp ") && rule.contains("-m icmp6 ")
}

#[test]
fn nftables_rules_mean_what_calicos_do() {
    let cases = tortie_testkit::vectors("nftables.json");
    let mut failures = Vec::new();
    for (index, case) in cases.iter().enumerate() {
        let case_input = input::read(&case["input"], Dataplane::Nftables);
        let mut actual = Chains::new();
        for chain in &case_input.chains {
            let name = nftables::chain_name(chain.table, &chain.name);
            let lines = nftables::lines(chain, case_input.ip_version);
            // Calico's rules take no account of authentication headers.
            if name.ends_with("/ah") {
                continue;
            }
            let is_for_header =
                |rule: &str| rule.starts_with("meta l4proto 51 ") && rule.ends_with("/ah");
            let lines = lines.into_iter().filter(|line| !is_for_header(&line.rule));
            let lines = lines.map(|line| Rendered {
                rule: line.rule,
                comment: line.comment,
            });
            actual.insert((String::new(), name), lines.collect());
        }
        let expected = nftables_chains(case);
        failures.extend(compare::nftables(index, case, &expected, &actual));
        failures.extend(compare::maps(index, &case["maps"], &case_input.maps));
    }
    assert!(cases.len() >= 90, "{} cases", cases.len());
    compare::report(&failures);
}

/// The listing of a pod without policies that every user of Calico has seen.
#[test]
fn the_chain_of_a_pod_without_policies_is_the_well_known_one() {
    use std::sync::Arc;
    use tortie_rules::{Config, Renderer, Workload};
    let renderer = Renderer::new(
        Arc::new(Config::default()),
        Dataplane::Iptables,
        IpVersion::V4,
    );
    let chains = renderer.workload_chains(Workload {
        interface: "calic9f294a6bbf",
        admin_up: true,
        tiers: &[],
        profiles: &["kns.default".to_owned(), "ksa.default.default".to_owned()],
        qos: None,
    });
    let lines = iptables::lines(&chains[0], IpVersion::V4);
    let hashes: Vec<&str> = lines.iter().map(|line| line.hash.as_str()).collect();
    assert_eq!(
        hashes,
        [
            "gdGCd7pAItfwyTLA",
            "JPvEc7l-QoWNA6WQ",
            "JBLdNQgG6AU0aBoD",
            "FxDPE7nrp1ZsAMQa",
            "VQd-z8yw78VeSlXp",
            "_3kBlEdzM5JBdsV3",
            "zQmrLF4vo1Sil_cI",
            "D-XKZRe8N6NYhdLa",
        ]
    );
    let bodies: Vec<&str> = lines
        .iter()
        .map(|line| {
            let start = line.body.find("\" ").map_or(0, |at| at + 2);
            &line.body[start..]
        })
        .collect();
    assert_eq!(
        bodies,
        [
            "-m conntrack --ctstate RELATED,ESTABLISHED --jump ACCEPT",
            "-m conntrack --ctstate INVALID --jump DROP",
            "--jump MARK --set-mark 0/0x30000",
            "--jump cali-pri-kns.default",
            "-m comment --comment \"Return if profile accepted\" -m mark --mark 0x10000/0x10000 \
             --jump RETURN",
            "--jump cali-pri-ksa.default.default",
            "-m comment --comment \"Return if profile accepted\" -m mark --mark 0x10000/0x10000 \
             --jump RETURN",
            "-m comment --comment \"Drop if no profiles matched\" --jump DROP",
        ]
    );
}

fn iptables_chains(case: &Value) -> Chains {
    let chains = case["chains"].as_array().expect("chains");
    chains
        .iter()
        .map(|chain| {
            let name = input::text(&chain["name"]);
            let before = format!("-A {name} ");
            let rules = input::list(&chain["rules"]).iter().map(|rule| {
                let rule = input::text(rule);
                Rendered::line(rule.strip_prefix(&before).unwrap_or(rule).to_owned())
            });
            let key = (input::text(&chain["table"]).to_owned(), name.to_owned());
            (key, rules.collect())
        })
        .collect()
}

fn nftables_chains(case: &Value) -> Chains {
    let chains = case["chains"].as_array().expect("chains");
    chains
        .iter()
        .map(|chain| {
            let rules = input::list(&chain["rules"]).iter().map(|rule| Rendered {
                rule: input::text(&rule["rule"]).to_owned(),
                comment: input::text(&rule["comment"]).to_owned(),
            });
            let key = (String::new(), input::text(&chain["name"]).to_owned());
            (key, rules.collect())
        })
        .collect()
}
