//! See `tortie_fuzzing::bird_reply`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tortie_fuzzing::bird_reply::check(data));
