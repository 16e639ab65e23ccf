//! See `tortie_fuzzing::cni_config`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tortie_fuzzing::cni_config::check(data));
