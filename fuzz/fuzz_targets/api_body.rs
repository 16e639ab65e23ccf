//! See `tortie_fuzzing::api_body`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tortie_fuzzing::api_body::check(data));
