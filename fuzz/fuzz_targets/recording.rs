//! See `tortie_fuzzing::recording`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tortie_fuzzing::recording::check(data));
