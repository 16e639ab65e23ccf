//! confd's files for the line of BIRD 1.6 that Calico's images have: two daemons, each with three files.

mod ipam;
mod main_file;

use crate::{Family, PerFamily, Plan};

/// The texts of both daemons.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bird1Files(PerFamily<DaemonFiles>);

/// Those of one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct DaemonFiles {
    /// What BIRD is started with; it includes the others.
    main: String,
    /// Blocks and static routes.
    aggr: String,
    /// What peers are told, and what the kernel gets.
    ipam: String,
}

impl Bird1Files {
    /// The files by their names. Those of sessions hold passwords.
    pub fn files(&self) -> [(&'static str, &str); 6] {
        let Self(PerFamily { v4, v6 }) = self;
        [
            ("bird.cfg", &v4.main),
            ("bird_aggr.cfg", &v4.aggr),
            ("bird_ipam.cfg", &v4.ipam),
            ("bird6.cfg", &v6.main),
            ("bird6_aggr.cfg", &v6.aggr),
            ("bird6_ipam.cfg", &v6.ipam),
        ]
    }
}

/// Writes a plan as confd would.
pub fn bird1(plan: &Plan) -> Bird1Files {
    Bird1Files(PerFamily::new(|family| DaemonFiles {
        main: main_file::render(plan, family),
        aggr: ipam::aggr(plan.family(family)),
        ipam: ipam::render(plan, family),
    }))
}

/// The beginning of the names of a daemon's files.
fn daemon(family: Family) -> &'static str {
    match family {
        Family::V4 => "bird",
        Family::V6 => "bird6",
    }
}
