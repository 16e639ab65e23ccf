//! Any objects as a datastore may hold them: a plan and its texts, in which no text of an object can begin or end a statement.
//! What is said not to concern the node leaves its plan as it was. Whatever is asked about such objects has an answer.

use serde_json::Value;
use tortie_api::{Kind, Resource};
use tortie_bgp::doctor::examine;
use tortie_bgp::explain::{self, Question, Target};
use tortie_bgp::inputs::{SecretRef, SecretText};
use tortie_bgp::{Cluster, Family, Identity, Inputs, Plan, Update, render};

use crate::text;

/// About how many networks of each IP version is asked.
const ASKED: usize = 4;

/// Checks it with these bytes, and panics if it does not hold.
pub fn check(data: &[u8]) {
    let Ok(documents) = tortie_api::yaml::parse(text(data)) else {
        return;
    };
    let mut inputs = Inputs::new(Identity {
        node: "node1".to_owned(),
        ..Identity::default()
    });
    let mut plan = Plan::new(&inputs);
    let mut cluster = Cluster::new(Identity {
        node: "node1".to_owned(),
        ..Identity::default()
    });
    for update in documents.iter().filter_map(update) {
        cluster.put(update.clone());
        let concerns = inputs.update(update);
        let next = Plan::new(&inputs);
        assert!(
            concerns || next == plan,
            "the plan is another, and nobody said so"
        );
        plan = next;
    }
    let sessions: usize = Family::BOTH
        .into_iter()
        .map(|family| plan.family(family))
        .filter(|plan| plan.address.is_some())
        .map(|plan| plan.peers.len())
        .sum();
    let bird1: String = render::bird1(&plan).files().map(|(_, text)| text).concat();
    for text in [render::bird2(&plan), bird1] {
        check_form(&text);
        let count = text
            .lines()
            .filter(|line| line.starts_with("protocol bgp "))
            .count();
        assert_eq!(count, sessions, "sessions that nobody planned:\n{text}");
    }
    render::bird2_problems(&plan);
    assert_eq!(cluster.plan("node1"), plan, "read once it is another plan");
    check_answers(&mut cluster, &plan);
}

/// Everything that a plan tells has an answer, and so has what nobody tells.
fn check_answers(cluster: &mut Cluster, plan: &Plan) {
    for family in Family::BOTH {
        let of_family = plan.family(family);
        let blocks = of_family.blocks.iter().map(|block| block.network);
        let services = of_family.services.iter().map(|service| service.network);
        let first = match family {
            Family::V4 => "10.0.0.0/8",
            Family::V6 => "::/0",
        };
        let first: Target = first.parse().expect("it is a network");
        let targets = blocks.chain(services).take(ASKED).map(Target::Network);
        for target in targets.chain([first]) {
            for node in [None, Some("node1"), Some("node2")] {
                let question = Question {
                    target,
                    node: node.map(str::to_owned),
                    peer: None,
                };
                let answer = explain::explain(cluster, &question);
                // Only a node that is not there is a wrong question.
                assert!(answer.is_ok() || node.is_some_and(|node| !cluster.has_node(node)));
            }
        }
    }
    let all = examine(cluster, None);
    let of_node = examine(cluster, Some("node1"));
    assert!(of_node.len() <= all.len());
}

/// The update that a document stands for.
fn update(document: &Value) -> Option<Update> {
    let kind = document.get("kind")?.as_str()?;
    match kind {
        "Service" => {
            let service = serde_json::from_value(document.clone()).ok()?;
            return Some(Update::Service(Box::new(service)));
        }
        "EndpointSlice" => {
            let slice = serde_json::from_value(document.clone()).ok()?;
            return Some(Update::EndpointSlice(Box::new(slice)));
        }
        "Secret" => {
            let field = |name: &str| {
                document
                    .get(name)
                    .and_then(Value::as_str)
                    .unwrap_or_default()
            };
            let secret = SecretRef {
                name: field("name").to_owned(),
                key: field("key").to_owned(),
            };
            let text = SecretText::new(field("text").as_bytes());
            return Some(Update::Secret(secret, Some(text)));
        }
        _ => {}
    }
    let kind = Kind::ALL.iter().find(|known| known.as_str() == kind)?;
    Resource::decode_stored(*kind, document)
        .ok()
        .map(Update::Resource)
}

/// Quotes and braces are in pairs, and nothing but plain characters is outside of texts in quotes.
fn check_form(text: &str) {
    let mut depth = 0_usize;
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        for part in line.split('"').step_by(2) {
            for character in part.chars() {
                let is_plain = character.is_ascii_graphic() || character == ' ';
                assert!(is_plain && character != '#', "{character:?} in {line:?}");
                match character {
                    '{' => depth += 1,
                    '}' => depth = depth.checked_sub(1).expect("a brace was opened"),
                    _ => {}
                }
            }
        }
        let quotes = line.matches('"').count();
        assert!(quotes.is_multiple_of(2), "a text goes on after {line:?}");
        for (index, symbol) in line.split('\'').enumerate() {
            let is_symbol = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
            let is_inside = index % 2 == 1 && !line.contains('"');
            assert!(
                !is_inside || symbol.chars().all(is_symbol),
                "{symbol:?} in {line:?}"
            );
        }
    }
    assert_eq!(depth, 0, "a brace is open:\n{text}");
}
