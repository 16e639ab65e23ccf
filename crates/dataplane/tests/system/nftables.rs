//! The nftables driver on the real kernel: the small clusters of `calc.json`, told at once and step by step.

use std::process::Command;
use std::sync::Arc;

use serde_json::Value;
use tortie_api::{Kind, Resource};
use tortie_convert::Converter;
use tortie_dataplane::nftables::NftablesDriver;
use tortie_dataplane::{Batch, DesiredState, Driver, Members, SetChange, SetKind};
use tortie_engine::message::Member;
use tortie_engine::{Engine, Overlaps, Update};
use tortie_rules::{Config, Dataplane, IpVersion};

const VERSIONS: [IpVersion; 2] = [IpVersion::V4, IpVersion::V6];

/// A world, and the drivers that it is applied with.
struct Node {
    world: DesiredState,
    drivers: Vec<NftablesDriver>,
    is_new: bool,
}

impl Node {
    fn new(hostname: &str) -> Self {
        let config = Arc::new(Config::default());
        Self {
            world: DesiredState::new(&config, Dataplane::Nftables, &VERSIONS, hostname),
            drivers: VERSIONS
                .map(|version| NftablesDriver::open(version).expect("a socket"))
                .into(),
            is_new: true,
        }
    }

    /// Brings what the engine says into the kernel.
    fn apply(&mut self, engine: &mut Engine) {
        for message in engine.flush() {
            self.world.on_message(message);
        }
        let batches = if std::mem::take(&mut self.is_new) {
            self.world.take_everything()
        } else {
            self.world.take_changes()
        };
        for (driver, (version, batch)) in self.drivers.iter_mut().zip(batches) {
            if let Err(error) = driver.apply(&batch) {
                panic!("{version:?}: {error}\n{batch:#?}");
            }
        }
    }

    /// What the kernel has is what was applied, and what would be applied to an empty kernel.
    fn assert_right(&mut self, context: &str) {
        for driver in &mut self.drivers {
            assert_eq!(driver.check().expect("a listing"), [], "{context}: applied");
        }
        let batches = self.world.take_everything();
        for (driver, (version, batch)) in self.drivers.iter_mut().zip(batches) {
            let drift = driver.compare(&batch).expect("a listing");
            assert_eq!(drift, [], "{context}: {version:?} from scratch");
        }
        self.is_new = true;
    }
}

fn updates(case: &Value) -> Vec<Update> {
    let kind_of = |value: &Value| Kind::from_name(value["kind"].as_str()?);
    let mut converter = Converter::new();
    let mut updates = Vec::new();
    for object in case["updates"].as_array().expect("updates") {
        if let Some(gone) = object.get("delete") {
            let text = |field: &str| gone[field].as_str().unwrap_or_default();
            let kind = kind_of(gone).expect("a kind");
            updates.extend(converter.remove(kind, text("namespace"), text("name")));
            continue;
        }
        let kind = kind_of(object).expect("a kind");
        let resource = Resource::decode_stored(kind, object).expect("a stored object");
        updates.extend(converter.set(&resource).updates);
    }
    updates
}

fn engine(case: &Value) -> (Engine, String) {
    let node = case["localHost"].as_str().expect("a node");
    let config = tortie_engine::Config {
        overlaps: Overlaps::AddressesSent,
        ..tortie_engine::Config::for_node(node)
    };
    (Engine::new(config), node.to_owned())
}

fn listing() -> String {
    let output = Command::new("nft")
        .args(["list", "ruleset"])
        .output()
        .expect("nft runs");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn small_clusters_at_once_and_step_by_step() {
    let cases = tortie_testkit::vectors("calc.json");
    for (index, case) in cases.iter().enumerate() {
        tortie_kernel::namespace::run_in_new(|| {
            let (mut engine, node) = engine(case);
            let all = updates(case);
            engine.on_in_sync();
            let mut step_by_step = Node::new(&node);
            for update in &all {
                engine.on_update(update);
                step_by_step.apply(&mut engine);
            }
            step_by_step.assert_right(&format!("case {index}"));
            assert!(listing().contains("table ip calico"));

            // A restart finds everything right and touches nothing.
            let (mut engine, _) = self::engine(case);
            for update in &all {
                engine.on_update(update);
            }
            engine.on_in_sync();
            let before = listing();
            let mut restarted = Node::new(&node);
            restarted.apply(&mut engine);
            assert_eq!(listing(), before, "case {index}: after a restart");
            restarted.assert_right(&format!("case {index}, restarted"));
        })
        .expect("a network namespace");
    }
}

/// Contents were once told apart by sums of short hashes without a key: for these two sets they are the same, and were
/// found in seconds.
#[test]
fn members_that_were_chosen_to_look_alike_are_told_apart() {
    let batch = |members: [&str; 2]| Batch {
        is_full: true,
        sets: vec![SetChange {
            name: "cali40s-chosen".into(),
            kind: SetKind::Addresses,
            change: Members::All(
                members
                    .map(|address| Member::Net(format!("{address}/32").parse().expect("a network")))
                    .into(),
            ),
        }],
        ..Batch::default()
    };
    let (before, after) = (
        ["10.25.60.242", "13.61.132.202"],
        ["11.50.252.139", "12.0.170.77"],
    );
    tortie_kernel::namespace::run_in_new(|| {
        for members in [before, after] {
            let mut driver = NftablesDriver::open(IpVersion::V4).expect("a socket");
            driver.apply(&batch(members)).expect("a set");
            let listing = listing();
            for member in members {
                assert!(listing.contains(member), "{member}: {listing}");
            }
        }
    })
    .expect("a network namespace");
}
