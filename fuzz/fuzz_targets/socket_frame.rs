//! See `tortie_fuzzing::socket_frame`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tortie_fuzzing::socket_frame::check(data));
