//! The input of `ipset restore`.

use std::fmt::Write as _;

use tortie_engine::message::Member;
use tortie_rules::IpVersion;

use crate::SetKind;

/// With so many members and more, a set gets the room for them at once, rather than growing step by step.
const MANY: usize = 4096;

/// How many members go into one place of the kernel's table, on average.
const PER_BUCKET: usize = 4;

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

    pub(super) fn create(
        &mut self,
        name: &str,
        kind: SetKind,
        ip_version: IpVersion,
        capacity: u32,
        members: &[Member],
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
        if members.len() >= MANY {
            let buckets = (members.len() / PER_BUCKET).next_power_of_two();
            self.put(format_args!(" hashsize {buckets}"));
        }
        self.text.push('\n');
        self.add(name, members);
    }

    pub(super) fn add(&mut self, name: &str, members: &[Member]) {
        for member in members {
            self.put(format_args!("add {name} {member}\n"));
        }
    }

    pub(super) fn delete(&mut self, name: &str, members: &[Member]) {
        for member in members {
            self.put(format_args!("del {name} {member}\n"));
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
