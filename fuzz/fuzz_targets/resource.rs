//! See `tortie_fuzzing::resource`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tortie_fuzzing::resource::check(data));
