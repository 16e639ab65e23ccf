//! What must hold for any bytes that come from outside, one function for each place where they are read.
//!
//! Fuzzers call these functions (`fuzz/fuzz_targets`), and a test does, with what is in `fuzz/corpus` and
//! `fuzz/regressions`.

pub mod api_body;
pub mod bgp;
pub mod bird_reply;
pub mod cni_config;
pub mod etcd_value;
pub mod recording;
pub mod resource;
pub mod selector;
pub mod socket_frame;

/// The beginning of these bytes that is text.
fn text(data: &[u8]) -> &str {
    data.utf8_chunks().next().map_or("", |chunk| chunk.valid())
}
