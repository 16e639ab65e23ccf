//! Logging to the standard error and to a file.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::config::NetworkConfig;

const DEFAULT_MEGABYTES: u64 = 100;
const DEFAULT_DAYS: u64 = 30;
const DEFAULT_COUNT: usize = 10;
const DAY: Duration = Duration::from_hours(24);

/// Our own crates, whose messages the configured level is for. Others may only warn.
const OURS: [&str; 4] = ["tortie_cni", "tortie_ipam", "tortie_store", "tortie_kernel"];

/// Starts logging as configured. A log that cannot be written hinders nothing.
pub(crate) fn start(config: &NetworkConfig) {
    let level = match config.log_level.to_ascii_lowercase().as_str() {
        "debug" => LevelFilter::DEBUG,
        "error" => LevelFilter::ERROR,
        _ => LevelFilter::INFO,
    };
    let others = level.min(LevelFilter::WARN);
    let filter = Targets::new()
        .with_default(others)
        .with_targets(OURS.map(|name| (name, level)));
    let file = open(config);
    let layer = tracing_subscriber::fmt::layer()
        .with_ansi(false)
        .with_writer(Mutex::new(Output { file }));
    // Fails only where somebody else has started logging, who then gets our messages.
    let _ = tracing_subscriber::registry()
        .with(filter)
        .with(layer)
        .try_init();
}

/// Both places that are written to.
struct Output {
    file: Option<File>,
}

impl io::Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Each message is one write, so that those of several plugins are not mixed.
        if let Some(file) = &mut self.file {
            let _ = file.write_all(bytes);
        }
        let _ = io::stderr().write_all(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn open(config: &NetworkConfig) -> Option<File> {
    let path = &config.log_file_path;
    if path.as_os_str().is_empty() {
        return None;
    }
    let or = |value: u64, default| if value == 0 { default } else { value };
    let limit = or(config.log_file_max_size, DEFAULT_MEGABYTES).saturating_mul(1 << 20);
    let days = or(config.log_file_max_age, DEFAULT_DAYS);
    let count = match config.log_file_max_count {
        0 => DEFAULT_COUNT,
        count => count,
    };
    if fs::metadata(path).is_ok_and(|metadata| metadata.len() >= limit) {
        let age = DAY.saturating_mul(u32::try_from(days).unwrap_or(u32::MAX));
        let _ = rotate(path, age, count);
    }
    let folder = path.parent()?;
    fs::create_dir_all(folder).ok()?;
    OpenOptions::new().create(true).append(true).open(path).ok()
}

/// Sets the file aside and removes those set aside before that are too old or too many.
fn rotate(path: &Path, age: Duration, count: usize) -> io::Result<()> {
    let (Some(folder), Some(stem)) = (path.parent(), path.file_stem()) else {
        return Ok(());
    };
    let stem = format!("{}-", stem.to_string_lossy());
    let extension = path
        .extension()
        .map(|e| format!(".{}", e.to_string_lossy()));
    let extension = extension.unwrap_or_default();
    let now = Timestamp::now().strftime("%Y-%m-%dT%H-%M-%S%.3f");
    fs::rename(path, folder.join(format!("{stem}{now}{extension}")))?;
    let mut aside = Vec::new();
    for entry in fs::read_dir(folder)?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with(&stem) && name.ends_with(&extension) {
            aside.push((name, entry));
        }
    }
    // The names sort by time.
    aside.sort_by(|a, b| b.0.cmp(&a.0));
    let oldest = SystemTime::now().checked_sub(age);
    for (place, (_, entry)) in aside.iter().enumerate() {
        let written = entry
            .metadata()
            .and_then(|metadata| metadata.modified())
            .ok();
        let is_old = oldest
            .zip(written)
            .is_some_and(|(oldest, written)| written < oldest);
        if place >= count || is_old {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_large_file_is_set_aside_and_few_are_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("cni.log");
        let config = NetworkConfig {
            log_file_path: path.clone(),
            log_file_max_size: 1,
            log_file_max_count: 2,
            ..NetworkConfig::default()
        };
        for _ in 0..4 {
            let mut file = open(&config).expect("a log");
            file.write_all(&vec![b'x'; 1 << 20]).expect("a log");
            // Names have milliseconds.
            std::thread::sleep(Duration::from_millis(2));
        }
        let names = fs::read_dir(folder.path()).expect("a folder").count();
        assert_eq!(names, 3);
        assert_eq!(fs::metadata(&path).expect("a log").len(), 1 << 20);
    }
}
