//! Which process has a file locked, for messages.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// The words of a command that are shown.
const WORDS: usize = 3;

/// `process 4711 (tortie agent)`, where the kernel tells: it does not of processes in other containers.
pub(super) fn of(path: &Path) -> Option<String> {
    let inode = fs::metadata(path).ok()?.ino();
    let pid = pid_in(&fs::read_to_string("/proc/locks").ok()?, inode)?;
    let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    Some(match shown(&command) {
        Some(command) => format!("process {pid} ({command})"),
        None => format!("process {pid}"),
    })
}

/// Lines are `1: FLOCK  ADVISORY  WRITE 4711 fe:00:1234 0 EOF`. Inodes of other disks may have the same number; then one
/// that has both locked is as likely as any.
fn pid_in(locks: &str, inode: u64) -> Option<u32> {
    locks.lines().find_map(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let kind = fields.next()?;
        let pid = fields.nth(2)?.parse().ok().filter(|pid| *pid > 0)?;
        let file = fields.next()?.rsplit(':').next()?;
        (kind == "FLOCK" && file.parse() == Ok(inode)).then_some(pid)
    })
}

/// The program without its folder, and its first arguments: enough to recognise it, and no secrets.
fn shown(command: &[u8]) -> Option<String> {
    let words = command.split(|byte| *byte == 0);
    let words = words.filter(|word| !word.is_empty());
    let mut words = words.map(String::from_utf8_lossy).take(WORDS);
    let program = words.next()?;
    let program = program.rsplit('/').next()?.to_owned();
    let arguments = words.take_while(|word| !word.starts_with('-'));
    let all = std::iter::once(program).chain(arguments.map(Into::into));
    Some(all.collect::<Vec<String>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_names_its_process() {
        let locks = "1: POSIX  ADVISORY  READ 12 fe:00:77 128 128\n\
                     2: FLOCK  ADVISORY  WRITE 4711 fe:00:77 0 EOF\n\
                     2: -> FLOCK  ADVISORY  WRITE 4712 fe:00:77 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE -1 fe:00:78 0 EOF\n";
        assert_eq!(pid_in(locks, 77), Some(4711));
        assert_eq!(pid_in(locks, 78), None);
        assert_eq!(pid_in("garbage\n\n1:", 1), None);
    }

    #[test]
    fn a_command_is_shown_without_options() {
        let show = |text: &str| shown(text.as_bytes());
        let command = "/usr/bin/tortie\0agent\0--node\0n1\0";
        assert_eq!(show(command).as_deref(), Some("tortie agent"));
        assert_eq!(
            show("tortie\0node\0startup\0x\0").as_deref(),
            Some("tortie node startup")
        );
        assert_eq!(show(""), None);
    }
}
