//! Scalar values with a wire form of their own: a JSON number or string, written back in Calico's normal form.

mod as_number;
mod boolean;
mod dscp;
mod duration;
mod port;
mod protocol;

pub use as_number::AsNumber;
pub use boolean::{felix_bool, go_bool};
pub use dscp::Dscp;
pub use duration::GoDuration;
pub use port::Port;
pub use protocol::Protocol;

use serde::{Deserialize, Serialize};

/// A JSON value that may be a number or a string.
#[derive(Deserialize)]
#[serde(untagged)]
enum NumberOrText {
    Number(u64),
    Text(String),
}

/// Why a scalar's text was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{found} is not {expected}")]
pub struct ScalarError {
    found: String,
    expected: &'static str,
}

impl ScalarError {
    fn new(found: impl std::fmt::Display, expected: &'static str) -> Self {
        Self {
            found: format!("`{found}`"),
            expected,
        }
    }
}

/// Writes a float without a fraction as a whole number, as Go does.
#[expect(clippy::ref_option, reason = "serde passes a reference to the field")]
pub(crate) fn float<S: serde::Serializer>(
    value: &Option<f64>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    /// Whole numbers up to here have an exact `f64`.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        Some(number) if number.fract() == 0.0 && number.abs() <= EXACT =>
        {
            #[expect(clippy::cast_possible_truncation, reason = "whole and within range")]
            serializer.serialize_i64(*number as i64)
        }
        other => other.serialize(serializer),
    }
}

/// The schema of a field that takes a number or a string.
fn int_or_string() -> schemars::Schema {
    schemars::json_schema!({
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "x-kubernetes-int-or-string": true
    })
}

/// Implements serde and schema traits for a scalar that is parsed from a number or a string.
macro_rules! number_or_text {
    ($name:ident, $schema:expr) => {
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let parsed = match crate::scalar::NumberOrText::deserialize(deserializer)
                    .map_err(|_| serde::de::Error::custom($name::EXPECTED))?
                {
                    crate::scalar::NumberOrText::Number(number) => Self::from_number(number),
                    crate::scalar::NumberOrText::Text(text) => text.parse(),
                };
                parsed.map_err(serde::de::Error::custom)
            }
        }

        impl schemars::JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                $schema
            }
        }
    };
}
use number_or_text;
