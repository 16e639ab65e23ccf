//! Which chain the kernel refuses, where nobody says so.
//!
//! Legacy iptables hands a table to the kernel as a whole, and says of a refusal only that there was one. Part of the
//! chains are then written without the others, which stay as they are; half of those that are refused together, until one
//! is left. What is taken on the way is what should be there anyway.

use std::sync::Arc;

use tortie_rules::iptables::lines;
use tortie_rules::{Chain, Renderer, Table};

use super::{ChainEdit, Rendered, Rules, TableEdit};
use crate::ChainKey;

impl Rules {
    /// The chain that is refused; none if all are taken by themselves, or if no table can be read.
    pub(super) fn search(&self, rendered: &Rendered<'_>) -> Option<ChainKey> {
        Table::ALL.into_iter().find_map(|table| {
            let of_table = rendered.chains.iter().map(|(chain, _)| *chain);
            let mut suspects: Vec<&Chain> = of_table.filter(|chain| chain.table == table).collect();
            if self.takes(table, rendered, &suspects) {
                return None;
            }
            while suspects.len() > 1 {
                let rest = suspects.split_off(suspects.len() / 2);
                if self.takes(table, rendered, &suspects) {
                    suspects = rest;
                }
            }
            let suspect = suspects.pop()?;
            // Two that are refused only together are not to be blamed on chance.
            let is_to_blame = !self.takes(table, rendered, &[suspect]);
            is_to_blame.then(|| ChainKey::of(suspect))
        })
    }

    /// Whether these chains of a table can be written while the others stay as they are. Those that are not there yet deny.
    fn takes(&self, table: Table, rendered: &Rendered<'_>, suspects: &[&Chain]) -> bool {
        let Ok(saved) = self.read(table) else {
            return true;
        };
        let is_suspect = |chain: &Chain| suspects.iter().any(|other| other.name == chain.name);
        let of_table = rendered
            .chains
            .iter()
            .filter(|(chain, _)| chain.table == table);
        let is_new = |chain: &Chain| !saved.chains.contains_key(&chain.name);
        let stand_ins = of_table
            .clone()
            .filter(|(chain, _)| !is_suspect(chain) && is_new(chain))
            .map(|(chain, _)| {
                let name = Arc::clone(&chain.name);
                Renderer::stand_in(table, name, "Not written yet")
            });
        let stand_ins = stand_ins.map(|chain| {
            let lines = lines(&chain, self.ip_version);
            (chain, lines)
        });
        let stand_ins: Vec<_> = stand_ins.collect();
        let wanted = of_table.filter(|(chain, _)| is_suspect(chain));
        let wanted = wanted.map(|(chain, lines)| (*chain, lines));
        let all = wanted.chain(stand_ins.iter().map(|(chain, lines)| (chain, lines)));
        let chains = all.map(|(chain, lines)| {
            let found = saved.chains.get(&chain.name).map(|hashes| &**hashes);
            ChainEdit::new(&chain.name, found, lines, self.tools.variant)
        });
        let edit = TableEdit {
            table,
            chains: chains.collect(),
            hooks: Vec::new(),
            removed: Vec::new(),
        };
        let mut input = String::new();
        edit.write(self.tools.variant, &mut input);
        let arguments: Vec<&str> = self.restore_arguments.iter().map(String::as_str).collect();
        input.is_empty() || self.tools.restore.run(&arguments, &input).is_ok()
    }
}
