//! The input of `ipset restore`.
//!
//! Whoever writes it may be killed in the middle, and `ipset` takes what it has read so far, a last line without its end
//! too. Members are in quotes, so that one that is cut off, `10.0.0.0/2` of `10.0.0.0/24`, is refused.

use std::fmt::Write as _;

use tortie_engine::message::Member;
use tortie_rules::IpVersion;

use super::member::fitting;
use crate::{Batch, Members, SetKind};

/// With so many members and more, a set gets the room for them at once, rather than growing step by step.
const MANY: usize = 4096;

/// How many members go into one place of the kernel's table, on average.
const PER_BUCKET: usize = 4;

/// What gives the sets of a full batch their members and no others, each with room for so many.
///
/// For `ipset restore`; it can be repeated without harm.
pub fn set_commands(full: &Batch, ip_version: IpVersion, capacity: u32) -> String {
    let mut script = Script::default();
    for set in &full.sets {
        if let Members::All(members) = &set.change {
            let members = fitting(members, ip_version);
            script.create(&set.name, set.kind, ip_version, capacity, members.len());
            script.flush(&set.name);
            script.add(&set.name, &members);
        }
    }
    script.text
}

/// Commands, one in a line. All can be repeated without harm.
#[derive(Debug, Default)]
pub(super) struct Script {
    text: String,
}

impl Script {
    /// The commands.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Makes a set with room for so many members at once.
    pub(super) fn create(
        &mut self,
        name: &str,
        kind: SetKind,
        ip_version: IpVersion,
        capacity: u32,
        members: usize,
    ) {
        let kind = match kind {
            SetKind::Addresses => "hash:ip",
            SetKind::Networks => "hash:net",
            SetKind::Ports => "hash:ip,port",
        };
        let family = match ip_version {
            IpVersion::V4 => "inet",
            IpVersion::V6 => "inet6",
        };
        self.put(format_args!(
            "create {name} {kind} family {family} maxelem {capacity}"
        ));
        if members >= MANY {
            let buckets = (members / PER_BUCKET).next_power_of_two();
            self.put(format_args!(" hashsize {buckets}"));
        }
        self.put(format_args!(" -exist\n"));
    }

    pub(super) fn add(&mut self, name: &str, members: &[Member]) {
        for member in members {
            self.put(format_args!("add {name} \"{member}\"\n"));
        }
    }

    pub(super) fn delete(&mut self, name: &str, members: &[Member]) {
        for member in members {
            self.put(format_args!("del {name} \"{member}\"\n"));
        }
    }

    pub(super) fn flush(&mut self, name: &str) {
        self.put(format_args!("flush {name}\n"));
    }

    pub(super) fn swap(&mut self, one: &str, other: &str) {
        self.put(format_args!("swap {one} {other}\n"));
    }

    pub(super) fn destroy(&mut self, name: &str) {
        self.put(format_args!("destroy {name}\n"));
    }

    fn put(&mut self, text: std::fmt::Arguments<'_>) {
        self.text.write_fmt(text).expect("a string takes any text");
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::sync::Arc;

    use tortie_kernel::namespace::run_in_new;

    use super::*;
    use crate::SetChange;

    /// What is in the kernel after `ipset` has read this, whatever it said to it.
    fn members_after(script: &str) -> Vec<String> {
        let restore = || {
            let mut restore = Command::new("ipset");
            let restore = restore.args(["restore", "-exist"]).stdin(Stdio::piped());
            let mut restore = restore.stderr(Stdio::null()).spawn().unwrap();
            let stdin = restore.stdin.take();
            std::io::Write::write_all(&mut stdin.unwrap(), script.as_bytes()).unwrap();
            restore.wait().unwrap();
            Command::new("ipset").arg("save").output().unwrap().stdout
        };
        let saved = String::from_utf8(run_in_new(restore).unwrap()).unwrap();
        let members = saved.lines().filter_map(|line| line.strip_prefix("add "));
        members.map(str::to_owned).collect()
    }

    #[test]
    fn of_commands_that_are_cut_off_nothing_is_taken_for_a_member_that_is_none() {
        let change = |name: &str, kind, members: &[Member]| SetChange {
            name: Arc::from(name),
            kind,
            change: Members::All(members.to_vec()),
        };
        let net = |text: &str| Member::Net(text.parse().unwrap());
        let port = Member::Port(
            "10.0.0.12".parse().unwrap(),
            tortie_engine::message::PortProtocol::Tcp,
            8080,
        );
        let full = Batch {
            sets: vec![
                change("nets", SetKind::Networks, &[net("10.0.0.0/24")]),
                change("ports", SetKind::Ports, &[port]),
            ],
            ..Batch::default()
        };
        let script = set_commands(&full, IpVersion::V4, 1000);
        let all = members_after(&script);
        assert_eq!(all, ["nets 10.0.0.0/24", "ports 10.0.0.12,tcp:8080"]);
        for length in 0..script.len() {
            let cut_off = &script[..length];
            let members = members_after(cut_off);
            let wrong = members.iter().find(|member| !all.contains(member));
            assert_eq!(wrong, None, "after {cut_off}");
        }
    }
}
