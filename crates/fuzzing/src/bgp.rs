//! Any objects as a datastore may hold them: a plan and its texts, in which no text of an object can begin or end a statement.
//! What is said not to concern the node leaves its plan as it was.

use serde_json::Value;
use tortie_api::{Kind, Resource};
use tortie_bgp::inputs::{SecretRef, SecretText};
use tortie_bgp::{Family, Identity, Inputs, Plan, Update, render};

use crate::text;

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
    for update in documents.iter().filter_map(update) {
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
