//! BIRD's answers as types, for BIRD 2 and 1.6.
//!
//! These are texts for people, which change a little with each release: a part that is not known is left out, and nothing
//! else depends on it.

mod configured;
mod interfaces;
mod protocols;
mod routes;
mod status;

pub use configured::{Configured, Outcome};
pub use interfaces::Interface;
pub use protocols::{Channel, Counters, Established, Protocol, Session, State, Timer};
pub use routes::{AsSegment, Attributes, Kind, NextHop, Route};
pub use status::{Phase, Recovery, Status};

pub(crate) use configured::configured;
pub use interfaces::interfaces;
pub use protocols::protocols;
pub use routes::routes;
pub use status::status;

/// The value of a line `KEY: VALUE`, and of `KEY:` with nothing behind it.
fn key_and_value(text: &str) -> Option<(&str, &str)> {
    let (key, value) = text.split_once(':')?;
    Some((key.trim(), value.trim()))
}

#[cfg(test)]
pub(super) mod recorded {
    //! What the two versions answered, in networks made for it.

    use super::super::reply::Reply;

    macro_rules! recorded {
        ($name:literal) => {
            include_str!(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/testdata/bird/",
                $name,
                ".txt"
            ))
        };
    }
    pub(in crate::bird) use recorded;

    pub(in crate::bird) fn reply(text: &str) -> Reply {
        Reply::parse(text.as_bytes()).expect("a whole answer")
    }
}
