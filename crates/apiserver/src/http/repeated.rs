//! Fields that a JSON text gives more than once, of which readers take the last.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::{self, Write as _};

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

/// How many are told: who has more will find them too.
const MOST_TOLD: usize = 16;

/// The fields that are given more than once, such as `spec.ingress[0].action`; none if the text is no JSON.
pub(super) fn repeated_fields(json: &[u8]) -> Vec<String> {
    let mut walk = Walk::default();
    let mut text = serde_json::Deserializer::from_slice(json);
    // What is wrong with the text is told by whoever reads it.
    let _ = Place(&mut walk).deserialize(&mut text);
    walk.repeated
}

#[derive(Default)]
struct Walk {
    path: String,
    repeated: Vec<String>,
}

/// A value, wherever the walk is.
struct Place<'a>(&'a mut Walk);

impl<'de> DeserializeSeed<'de> for Place<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Place<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let Self(walk) = self;
        let length = walk.path.len();
        let mut index = 0_usize;
        loop {
            // Writing to a text does not fail.
            let _ = write!(walk.path, "[{index}]");
            let item = items.next_element_seed(Place(walk))?;
            walk.path.truncate(length);
            if item.is_none() {
                return Ok(());
            }
            index += 1;
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        let Self(walk) = self;
        let length = walk.path.len();
        let mut seen = HashSet::new();
        while let Some(Name(name)) = fields.next_key()? {
            if length > 0 {
                walk.path.push('.');
            }
            walk.path.push_str(&name);
            if !seen.insert(name) && walk.repeated.len() < MOST_TOLD {
                walk.repeated.push(walk.path.clone());
            }
            fields.next_value_seed(Place(walk))?;
            walk.path.truncate(length);
        }
        Ok(())
    }
}

/// The name of a field, without a copy if the text has it as it is.
#[derive(serde::Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, expected: &[&str]) {
        assert_eq!(repeated_fields(json.as_bytes()), expected, "{json}");
    }

    #[test]
    fn repeated_fields_are_found_wherever_they_are() {
        check(r#"{"a": 1, "b": {"a": 2}, "c": [{"a": 3}, {"a": 4}]}"#, &[]);
        check(r#"{"a": 1, "b": null, "a": true}"#, &["a"]);
        check(
            r#"{"spec": {"rules": [{"x": 1.5}, {"x": "1", "y": [], "x": {}}], "z": -1, "z": 0}}"#,
            &["spec.rules[1].x", "spec.z"],
        );
        check(r#"{"\u0061": 1, "a": 2}"#, &["a"]);
        check(r#"[{"op": "add", "op": "remove"}]"#, &["[0].op"]);
    }

    #[test]
    fn what_is_no_json_is_left_to_others() {
        check(r#"{"a": "#, &[]);
        check(&"[".repeat(100_000), &[]);
        check("", &[]);
    }

    #[test]
    fn only_some_of_many_are_told() {
        let fields = vec![r#""a": 1"#; 50_000].join(",");
        assert_eq!(
            repeated_fields(format!("{{{fields}}}").as_bytes()).len(),
            MOST_TOLD
        );
    }
}
