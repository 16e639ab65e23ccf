//! See `tortie_fuzzing::etcd_value`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tortie_fuzzing::etcd_value::check(data));
