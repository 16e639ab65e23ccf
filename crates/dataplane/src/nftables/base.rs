//! The chains that the kernel enters by itself. Calico has one for each of iptables' built-in chains.

use tortie_kernel::nft::{BaseChain, ChainKind, Hook, Policy};
use tortie_rules::Table;

const RAW: i32 = -300;
const MANGLE: i32 = -150;
const DNAT: i32 = -100;
const FILTER: i32 = 0;
/// Behind those who translate the source too.
const SNAT: i32 = 110;

/// The chains that the kernel enters by itself, each with the table that it stands for.
pub fn chains() -> impl Iterator<Item = (Table, BaseChain)> {
    use ChainKind::{Filter, Nat, Route};
    use Hook::{Forward, Input, Output, Postrouting, Prerouting};
    let chains = [
        (Table::Raw, "PREROUTING", Filter, Prerouting, RAW),
        (Table::Raw, "OUTPUT", Filter, Output, RAW),
        (Table::Mangle, "PREROUTING", Filter, Prerouting, MANGLE),
        (Table::Mangle, "INPUT", Filter, Input, MANGLE),
        (Table::Mangle, "FORWARD", Filter, Forward, MANGLE),
        (Table::Mangle, "OUTPUT", Route, Output, MANGLE),
        (Table::Mangle, "POSTROUTING", Filter, Postrouting, MANGLE),
        (Table::Nat, "PREROUTING", Nat, Prerouting, DNAT),
        (Table::Nat, "INPUT", Nat, Input, DNAT),
        (Table::Nat, "OUTPUT", Nat, Output, SNAT),
        (Table::Nat, "POSTROUTING", Nat, Postrouting, SNAT),
        (Table::Filter, "INPUT", Filter, Input, FILTER),
        (Table::Filter, "FORWARD", Filter, Forward, FILTER),
        (Table::Filter, "OUTPUT", Filter, Output, FILTER),
    ];
    chains
        .into_iter()
        .map(|(table, name, kind, hook, priority)| {
            let chain = BaseChain {
                name: super::full_name(table, name),
                kind,
                hook,
                priority,
                policy: Policy::Accept,
            };
            (table, chain)
        })
}
