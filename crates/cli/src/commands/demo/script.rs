//! What happens, in order: policies that are applied, and the connections that must then be possible.

use super::cast::{Cell, IpVersion, Protocol};

/// One scene.
pub(super) struct Step {
    pub(super) title: &'static str,
    /// What is applied, one after the other.
    pub(super) changes: &'static [Change],
    /// Whether a connection is then possible.
    pub(super) is_open: fn(&Cell) -> bool,
}

/// A file that is applied.
pub(super) struct Change {
    pub(super) file: &'static str,
    pub(super) yaml: &'static str,
    /// The connection that shows when it is in force.
    pub(super) shown_by: Cell,
    /// Whether that becomes possible or ceases to be.
    pub(super) opens: bool,
}

const FRONTEND: usize = 0;
const BACKEND: usize = 1;
const DATABASE: usize = 2;
const STRANGER: usize = 3;

/// All of it.
pub(super) const STEPS: [Step; 3] = [
    Step {
        title: "No policy: everything is open",
        changes: &[],
        is_open: |_| true,
    },
    Step {
        title: "Default deny: nothing passes in or out of the shop",
        changes: &[Change {
            file: "default-deny.yaml",
            yaml: include_str!("policies/default-deny.yaml"),
            shown_by: to_backend(Protocol::Udp),
            opens: false,
        }],
        is_open: |_| false,
    },
    Step {
        title: "Allow what the shop needs: frontend to backend to database, and DNS among its own",
        changes: &[
            Change {
                file: "allow-dns.yaml",
                yaml: include_str!("policies/allow-dns.yaml"),
                shown_by: to_backend(Protocol::Udp),
                opens: true,
            },
            Change {
                file: "allow-shop.yaml",
                yaml: include_str!("policies/allow-shop.yaml"),
                shown_by: to_backend(Protocol::Tcp),
                opens: true,
            },
        ],
        is_open: |cell| match cell.protocol {
            Protocol::Tcp => {
                matches!(
                    (cell.from, cell.to),
                    (FRONTEND, BACKEND) | (BACKEND, DATABASE)
                )
            }
            Protocol::Udp => cell.from != STRANGER && cell.to != STRANGER,
        },
    },
];

/// The connections that are explained in the end: one that is denied, and one that is allowed.
pub(super) const EXPLAINED: [Cell; 2] = [to_database_from(FRONTEND), to_database_from(BACKEND)];

const fn to_backend(protocol: Protocol) -> Cell {
    Cell {
        from: FRONTEND,
        to: BACKEND,
        protocol,
        version: IpVersion::V4,
    }
}

const fn to_database_from(from: usize) -> Cell {
    Cell {
        from,
        to: DATABASE,
        protocol: Protocol::Tcp,
        version: IpVersion::V4,
    }
}
