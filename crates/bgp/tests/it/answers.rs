//! Whatever objects say, what is asked about them has an answer, and what is read once makes the same plan.

use proptest::prelude::*;
use tortie_bgp::doctor::examine;
use tortie_bgp::explain::{Question, Target, explain};
use tortie_bgp::{Cluster, Family, Inputs, Plan};

use crate::{random, world};

const WORLDS: u32 = 150;

#[test]
fn whatever_objects_say_there_is_an_answer() {
    let config = ProptestConfig {
        cases: WORLDS,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    proptest!(config, |(updates in random::world())| {
        let mut inputs = Inputs::new(world::identity());
        let mut cluster = Cluster::new(world::identity());
        for update in updates {
            cluster.put(update.clone());
            inputs.update(update);
        }
        let plan = Plan::new(&inputs);
        let other = cluster.nodes().map(ToString::to_string).find(|name| name != world::NODE);
        // Another node in between leaves nothing behind.
        for node in other.iter().map(String::as_str).chain([world::NODE]) {
            cluster.plan(node);
        }
        prop_assert_eq!(&cluster.plan(world::NODE), &plan);
        for family in Family::BOTH {
            let of_family = plan.family(family);
            let blocks = of_family.blocks.iter().map(|block| block.network);
            for network in blocks.chain(of_family.services.iter().map(|one| one.network)) {
                for node in [None, Some(world::NODE.to_owned()), other.clone()] {
                    let question = Question {
                        target: Target::Network(network),
                        node,
                        peer: None,
                    };
                    let answer = explain(&mut cluster, &question);
                    let answer = answer.map_err(TestCaseError::fail)?;
                    prop_assert!(!answer.nodes.is_empty(), "{:?}", answer);
                    // Who is not told is told why.
                    for told in answer.nodes.iter().flat_map(|node| &node.told) {
                        prop_assert!(!told.reason.text.is_empty());
                    }
                }
            }
        }
        for finding in examine(&mut cluster, None) {
            prop_assert!(finding.reason.origin.is_some(), "{:?}", finding);
        }
    });
}
