//! Real BIRD 2 on two nodes that are neighbours.

mod answers;
mod daemon;
mod reload;
pub(crate) mod site;
mod victim;
