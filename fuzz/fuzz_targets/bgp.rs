//! See `tortie_fuzzing::bgp`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tortie_fuzzing::bgp::check(data));
