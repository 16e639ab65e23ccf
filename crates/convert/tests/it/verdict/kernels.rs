//! Kernels that do not do what rules say.

use serde_json::{Value, json};
use tortie_api::names::PolicyId;
use tortie_api::scalar::Protocol;
use tortie_engine::message::{Policy, Profile};
use tortie_engine::verdict::{Denial, EndpointKey, Flow, Kernel, Outcome, Place, Verdict};

use crate::verdict::shop::{objects, pod, query, resource};
use crate::verdict::world::{Cluster, World};

/// A kernel of node `n1`, with what it denies.
#[derive(Default)]
struct Known {
    /// `NetworkPolicy shop/web`, `Profile kns.shop` or the name of an interface.
    denies: &'static str,
    /// Only for packets of this IP version and direction.
    only: Option<(u8, bool)>,
    sees_behind_header: bool,
}

impl Known {
    fn denial(&self, place: &Place<'_>, object: &str) -> Option<Denial> {
        assert_eq!(place.node, "n1");
        let version = if place.is_ipv4 { 4 } else { 6 };
        let concerns = self
            .only
            .is_none_or(|only| only == (version, place.is_ingress));
        (object == self.denies && concerns).then(|| Denial::TooManyRules {
            rules: 30_000,
            limit: 20_000,
            dataplane: "nftables".to_owned(),
        })
    }
}

impl Kernel for Known {
    fn denial_of_policy(
        &self,
        place: &Place<'_>,
        id: &PolicyId,
        policy: &Policy,
    ) -> Option<Denial> {
        assert_eq!(policy.tier, "default");
        self.denial(place, &id.full_name())
    }

    fn denial_of_profile(&self, place: &Place<'_>, name: &str, _: &Profile) -> Option<Denial> {
        self.denial(place, &format!("Profile {name}"))
    }

    fn denial_of_endpoint(
        &self,
        place: &Place<'_>,
        _: &EndpointKey,
        interface: &str,
    ) -> Option<Denial> {
        self.denial(place, interface)
    }

    fn hides_behind_header(&self, _: &str) -> bool {
        !self.sees_behind_header
    }
}

/// What is said of a packet from `web` to `db`, on which policy `first` (with these rules) and then `second` apply.
fn verdict(rules: &Value, flow: &Flow, kernel: &Known) -> Verdict {
    let policy = |name: &str, order: u32, rules: &Value| {
        let spec = json!({"selector": "app == 'db'", "order": order, "ingress": rules});
        resource(
            "NetworkPolicy",
            &json!({"metadata": {"namespace": "shop", "name": name}, "spec": spec}),
        )
    };
    let allow = json!([{"action": "Allow"}]);
    let policies = [policy("first", 1, rules), policy("second", 2, &allow)];
    let mut cluster = Cluster::new();
    cluster.become_world(&World::new(objects().into_iter().chain(policies)), 0);
    cluster.engine.judge_with(kernel).verdict(flow)
}

fn query_v6() -> Flow {
    Flow {
        source: pod("web", "fd00::1"),
        destination: pod("db", "fd00::2"),
        ..query()
    }
}

#[track_caller]
fn check_ingress(verdict: &Verdict, outcome: Outcome, by: &str) {
    assert_eq!(
        (verdict.verdict, verdict.ingress.verdict),
        (outcome, outcome)
    );
    assert_eq!(verdict.ingress.by.to_string(), by);
}

#[test]
fn a_policy_with_too_many_rules_denies_when_it_is_asked() {
    let nothing = json!([{"action": "Allow", "protocol": "UDP"}]);
    let all = json!([{"action": "Allow"}]);
    let kernel = Known {
        denies: "NetworkPolicy shop/second",
        ..Known::default()
    };
    let denied = verdict(&nothing, &query(), &kernel);
    let because = "Deny by NetworkPolicy shop/second in tier default, whatever its rules say: \
                   it needs 30000 rules in one chain of nftables, and 20000 is the most";
    check_ingress(&denied, Outcome::Deny, because);
    let json = serde_json::to_value(&denied.ingress).expect("JSON");
    assert_eq!(
        json["by"],
        json!({
            "type": "denial",
            "object": "NetworkPolicy shop/second",
            "policy": {"kind": "NetworkPolicy", "namespace": "shop", "name": "second"},
            "tier": "default",
            "action": "Deny",
            "because": {"type": "tooManyRules", "rules": 30_000, "limit": 20_000, "dataplane": "nftables"},
        })
    );
    let steps = &json["trace"][0]["tier"]["policies"];
    assert_eq!(steps[1]["denial"], json["by"]["because"]);
    // A policy before it decides, and it is not asked.
    let by = "Allow by rule 0 of NetworkPolicy shop/first in tier default";
    check_ingress(&verdict(&all, &query(), &kernel), Outcome::Allow, by);
}

#[test]
fn ip_versions_and_directions_are_apart() {
    let all = json!([{"action": "Allow"}]);
    let allowed = "Allow by rule 0 of NetworkPolicy shop/first in tier default";
    for (only, flow) in [
        ((6, true), query()),
        ((4, false), query()),
        ((4, true), query_v6()),
    ] {
        let kernel = Known {
            denies: "NetworkPolicy shop/first",
            only: Some(only),
            ..Known::default()
        };
        check_ingress(&verdict(&all, &flow, &kernel), Outcome::Allow, allowed);
    }
}

#[test]
fn a_profile_and_an_endpoint_deny_too() {
    let all = json!([{"action": "Allow"}]);
    let profile = Known {
        denies: "Profile kns.shop",
        ..Known::default()
    };
    let denied = verdict(&all, &query(), &profile);
    assert_eq!(denied.egress.verdict, Outcome::Deny);
    let by = denied.egress.by.to_string();
    assert!(by.starts_with("Deny by Profile kns.shop, whatever"), "{by}");
    let endpoint = Known {
        denies: "calidb",
        ..Known::default()
    };
    let denied = verdict(&all, &query(), &endpoint);
    assert_eq!(denied.egress.verdict, Outcome::Allow);
    let by = denied.ingress.by.to_string();
    assert!(by.starts_with("Deny by shop/db, whatever"), "{by}");
}

/// As in the kernel: see `crates/dataplane/tests/enforcement/authentication_header.rs`.
#[test]
fn what_comes_behind_an_authentication_header_cannot_be_compared() {
    let header = Flow {
        protocol: Some(Protocol::Number(51)),
        source_port: None,
        destination_port: None,
        ..query_v6()
    };
    let web = |action: &str| json!({"action": action, "protocol": "TCP", "destination": {"ports": [8080]}});
    let all = json!({"action": "Allow"});
    let from = |net: &str| {
        let mut rule = web("Deny");
        rule["source"] = json!({"nets": [net]});
        rule
    };
    let cases = [
        (vec![web("Deny"), all.clone()], "Deny by rule 0"),
        (vec![from("fd99::/64"), all.clone()], "Allow by rule 1"),
        (vec![from("fd00::/64"), all.clone()], "Deny by rule 0"),
        (
            vec![json!({"action": "Allow", "protocol": 51}), web("Deny")],
            "Allow by rule 0",
        ),
        (
            vec![json!({"action": "Deny", "protocol": 51})],
            "Deny by rule 0",
        ),
        (
            vec![json!({"action": "Deny", "notProtocol": "TCP"})],
            "Deny by rule 0",
        ),
        (vec![web("Pass"), all.clone()], "Deny by rule 0"),
        (
            vec![json!({"action": "Log", "protocol": "TCP"}), all.clone()],
            "Allow by rule 1",
        ),
    ];
    let of_first = |found: &str| format!("{found} of NetworkPolicy shop/first in tier default");
    let kernel = Known::default();
    for (rules, found) in cases {
        let verdict = verdict(&json!(rules), &header, &kernel);
        assert_eq!(verdict.ingress.by.to_string(), of_first(found), "{rules:?}");
    }
    // Rules that allow what cannot be seen do not match.
    let other = json!([{"action": "Allow", "notProtocol": "TCP"}]);
    let by = "Allow by rule 0 of NetworkPolicy shop/second in tier default";
    check_ingress(&verdict(&other, &header, &kernel), Outcome::Allow, by);
    // Where it can be seen, and in IPv4, it is a protocol as any other.
    let rules = json!([web("Deny"), all]);
    let seeing = Known {
        sees_behind_header: true,
        ..Known::default()
    };
    let four = Flow {
        protocol: header.protocol.clone(),
        destination_port: None,
        ..query()
    };
    for (flow, kernel) in [(&header, &seeing), (&four, &kernel)] {
        let by = of_first("Allow by rule 1");
        check_ingress(&verdict(&rules, flow, kernel), Outcome::Allow, &by);
    }
}
