//! The verdict on connections, compared with an evaluator that knows only what is documented about policies; and the
//! words in which the verdict explains itself.

mod evaluate;
mod flows;
mod kernels;
mod random;
mod reasons;
mod shop;
mod world;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestError, TestRng, TestRunner};
use tortie_api::names::PolicyKind;
use tortie_engine::verdict::{By, Flow, Outcome, Side, Verdict};

use evaluate::{Decision, Evaluator};
use flows::Sketch;
use world::{Cluster, World};

/// How many pairs of worlds are tried; each world with up to [`FLOWS`] packets.
const WORLDS: u32 = 280;
const FLOWS: usize = 120;

/// The engine is told of a random world, then of the way to another; in both it must answer as the evaluator does.
#[test]
fn the_verdict_is_what_the_documentation_says() {
    let worlds = std::env::var("VERDICT_WORLDS").ok();
    // Without a number the worlds are the same every time, so that what must be seen in them is seen every time.
    let is_fixed = worlds.is_none();
    let config = ProptestConfig {
        cases: worlds.map_or(WORLDS, |text| text.parse().expect("a number")),
        max_shrink_iters: 20_000,
        max_shrink_time: 60_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let mut runner = if is_fixed {
        let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
        TestRunner::new_with_rng(config, rng)
    } else {
        TestRunner::new(config)
    };
    let strategy = (
        [random::world(), random::world()],
        vec(flows::sketch(), 1..=FLOWS),
        any::<u64>(),
    );
    let counts = RefCell::default();
    let result = runner.run(&strategy, |(worlds, sketches, seed)| {
        check(&worlds, &sketches, seed, &mut counts.borrow_mut())
    });
    // The reason says all; the values that proptest would print are many pages.
    match result {
        Ok(()) => {}
        Err(TestError::Abort(reason) | TestError::Fail(reason, _)) => panic!("{reason}"),
    }
    assert_all_seen(&counts.into_inner());
}

/// How often something decided, by what it is.
type Seen = BTreeMap<String, usize>;

/// Whether the random worlds are worth anything: everything that can decide must have decided now and then.
fn assert_all_seen(seen: &Seen) {
    let mut expected = vec![
        "NoEndpoint",
        "NoProfile",
        "Failsafe",
        "EndOfTier",
        "Profile Allow",
        "Profile Deny",
    ];
    expected.extend([
        "GlobalNetworkPolicy Normal Allow",
        "GlobalNetworkPolicy Normal Deny",
    ]);
    expected.extend([
        "GlobalNetworkPolicy Untracked Allow",
        "GlobalNetworkPolicy Untracked Deny",
    ]);
    expected.extend([
        "GlobalNetworkPolicy PreDnat Allow",
        "GlobalNetworkPolicy PreDnat Deny",
    ]);
    expected.extend(["NetworkPolicy Normal Allow", "NetworkPolicy Normal Deny"]);
    expected.extend([
        "KubernetesNetworkPolicy Normal Allow",
        "KubernetesClusterNetworkPolicy Normal Allow",
    ]);
    expected.push("KubernetesClusterNetworkPolicy Normal Deny");
    for kind in expected {
        let times = seen.get(kind).copied().unwrap_or_default();
        assert!(times > 0, "{kind} never decided: {seen:#?}");
    }
}

fn note(by: &By, seen: &mut Seen) {
    let what = match by {
        By::Rule {
            policy,
            action,
            point,
            ..
        } => format!("{} {point:?} {action:?}", policy.kind),
        By::EndOfTier { .. } => "EndOfTier".to_owned(),
        By::Profile { action, .. } => format!("Profile {action:?}"),
        By::NoProfile { .. } => "NoProfile".to_owned(),
        By::Denial { .. } => "Denial".to_owned(),
        By::Failsafe { .. } => "Failsafe".to_owned(),
        By::NoEndpoint { .. } => "NoEndpoint".to_owned(),
        By::OwnNode { .. } | By::EndpointToHost { .. } => "Host".to_owned(),
    };
    *seen.entry(what).or_default() += 1;
}

fn check(
    worlds: &[World],
    sketches: &[Sketch],
    seed: u64,
    counts: &mut Seen,
) -> Result<(), TestCaseError> {
    let mut cluster = Cluster::new();
    for world in worlds {
        cluster.become_world(world, seed);
        let evaluator = Evaluator::new(world);
        let ends = flows::ends(world);
        let mut judge = cluster.engine.judge();
        for sketch in sketches {
            let flow = sketch.flow(&ends);
            let verdict = judge.verdict(&flow);
            let expected = evaluator.verdict(&flow);
            if is_different(&verdict, &expected) {
                return Err(TestCaseError::fail(report(
                    world, &flow, &verdict, &expected,
                )));
            }
            note(&verdict.egress.by, counts);
            note(&verdict.ingress.by, counts);
        }
    }
    Ok(())
}

fn is_different(
    verdict: &Verdict,
    (overall, egress, ingress): &(Outcome, Decision, Decision),
) -> bool {
    let is_other = |side: &Side, (outcome, by): &Decision| {
        side.verdict != *outcome || comparable(&side.by) != *by
    };
    verdict.verdict != *overall
        || is_other(&verdict.egress, egress)
        || is_other(&verdict.ingress, ingress)
}

/// One rule of Kubernetes becomes several of Calico's, so that its place says nothing.
fn comparable(by: &By) -> By {
    let mut by = by.clone();
    if let By::Rule { policy, rule, .. } = &mut by
        && matches!(
            policy.kind,
            PolicyKind::KubernetesNetworkPolicy | PolicyKind::KubernetesClusterNetworkPolicy
        )
    {
        *rule = 0;
    }
    by
}

/// All that is needed to see what went wrong.
fn report(
    world: &World,
    flow: &Flow,
    verdict: &Verdict,
    expected: &(Outcome, Decision, Decision),
) -> String {
    let mut text = format!("\n=== World\n{world}\n=== Packet\n{flow:#?}\n");
    let sides = [
        ("egress", &verdict.egress, &expected.1),
        ("ingress", &verdict.ingress, &expected.2),
    ];
    for (name, side, (outcome, by)) in sides {
        let _ = writeln!(text, "=== {name}");
        let _ = writeln!(text, "the engine:    {:?}: {}", side.verdict, side.by);
        let _ = writeln!(text, "the evaluator: {outcome:?}: {by}");
        for step in &side.trace {
            let _ = writeln!(
                text,
                "  {}",
                serde_json::to_string(step).unwrap_or_default()
            );
        }
    }
    text
}
