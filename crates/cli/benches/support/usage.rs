//! What a process has used, as the kernel counts it.

use std::fs;

/// Clock ticks per second, as Linux has them for all processes.
const TICKS: f64 = 100.0;

/// Processor time of a process, in seconds.
pub(crate) fn cpu_seconds(process: u32) -> f64 {
    ticks(process, 11..13)
}

/// That of the programs that it started and that have ended.
#[allow(dead_code, reason = "not every benchmark starts such processes")]
pub(crate) fn cpu_seconds_of_children(process: u32) -> f64 {
    ticks(process, 13..15)
}

fn ticks(process: u32, fields: std::ops::Range<usize>) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let (_, rest) = stat.rsplit_once(") ").unwrap();
    let all: Vec<&str> = rest.split_whitespace().collect();
    let ticks = all[fields]
        .iter()
        .map(|field| field.parse::<f64>().unwrap());
    ticks.sum::<f64>() / TICKS
}

/// A field of what the kernel says about a process's memory, such as `VmHWM`, in MB.
pub(crate) fn megabytes(process: u32, field: &str) -> f64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap();
    let kilobytes = line.split_whitespace().nth(1).unwrap();
    kilobytes.parse::<f64>().unwrap() / 1024.0
}
