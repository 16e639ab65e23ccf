//! Hearing at once that somebody else changed what is ours.
//!
//! nftables tells, and with it the kind of iptables that is kept by it. Legacy iptables and ipset tell nobody; what is
//! changed there is found when all is read now and then.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use tortie_kernel::nft::{Change, Changed, Monitor};
use tortie_rules::Table;

use crate::change::Part;
use crate::iptables::Variant;
use crate::nftables::TABLE;

/// What the names of chains that are ours begin with in iptables.
const OURS: &str = "cali-";

/// Watches what others do to one part of the kernel.
pub(crate) struct Watch {
    monitor: Monitor,
    part: Part,
}

impl Watch {
    /// None if that part of the kernel does not tell. What is done through sockets with these ports is not told.
    pub(crate) fn open(part: Part, own: &[u32]) -> io::Result<Option<Self>> {
        if part == Part::Iptables(Variant::Legacy) {
            return Ok(None);
        }
        let monitor = Monitor::open(own)?;
        Ok(Some(Self { monitor, part }))
    }

    /// Whether somebody changed what is ours, or may have.
    pub(crate) fn is_disturbed(&mut self) -> io::Result<bool> {
        let part = self.part;
        let mut is_disturbed = false;
        let is_complete = self.monitor.drain(|change| {
            is_disturbed |= match part {
                Part::Nftables => change.table == TABLE,
                Part::Iptables(_) => concerns_iptables(&change),
            };
        })?;
        Ok(is_disturbed || !is_complete)
    }

    /// What was told so far was done on our behalf, by programs whose sockets we do not know.
    pub(crate) fn forget(&mut self) -> io::Result<()> {
        match self.part {
            Part::Nftables => Ok(()),
            Part::Iptables(_) => self.monitor.drain(|_| ()).map(drop),
        }
    }
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.monitor.as_fd()
    }
}

/// Others add to the tables of iptables all the time. It concerns us if a chain of ours is changed, or if something is
/// removed from one of the kernel's own chains or with them.
fn concerns_iptables(change: &Change<'_>) -> bool {
    let is_table = Table::ALL.iter().any(|table| table.name() == change.table);
    let is_kernels = |name: &str| name.bytes().all(|byte| byte.is_ascii_uppercase());
    is_table
        && match change.what {
            Changed::Table => change.is_removal,
            Changed::Chain(name) => {
                name.starts_with(OURS) || (change.is_removal && is_kernels(name))
            }
            Changed::Set(_) => false,
        }
}
