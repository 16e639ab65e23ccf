//! What becomes of packets between two pods while the data plane is asked for things out of the ordinary.

mod alternatives;
mod authentication_header;
mod bed;
mod refusals;
mod variants;
