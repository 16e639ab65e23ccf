//! See `tortie_fuzzing::selector`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tortie_fuzzing::selector::check(data));
