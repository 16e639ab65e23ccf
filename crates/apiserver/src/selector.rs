//! The selectors that lists and watches take: by labels and by fields.

mod fields;
mod labels;

pub use fields::FieldSelector;
pub use labels::LabelSelector;
