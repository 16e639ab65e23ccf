//! The tables as `iptables-restore` reads them.

use std::fmt::Write as _;

use tortie_config::ChainInsertMode;
use tortie_dataplane::Batch;
use tortie_rules::iptables::{Line, appended, inserted, lines};
use tortie_rules::{IpVersion, Table};

/// Writes all tables. The policies and the rules of others are left alone where the program is told to (`--noflush`).
pub(super) fn write(batch: &Batch, version: IpVersion, mode: ChainInsertMode, out: &mut String) {
    for table in Table::ALL {
        put(out, format_args!("*{}\n", table.name()));
        let chains = || batch.chains.iter().filter(|chain| chain.table == table);
        for chain in chains() {
            put(out, format_args!(":{} - [0:0]\n", chain.name));
        }
        for chain in chains() {
            append(&chain.name, &lines(chain, version), out);
        }
        for hook in batch.hooks.iter().filter(|hook| hook.table == table) {
            let first = inserted(hook.chain, &hook.first, version);
            match mode {
                ChainInsertMode::Append => append(hook.chain, &first, out),
                ChainInsertMode::Insert => {
                    for line in first.iter().rev() {
                        put(out, format_args!("-I {} {}\n", hook.chain, line.body));
                    }
                }
            }
            append(hook.chain, &appended(hook.chain, &hook.last, version), out);
        }
        out.push_str("COMMIT\n");
    }
}

fn append(chain: &str, lines: &[Line], out: &mut String) {
    for line in lines {
        put(out, format_args!("-A {chain} {}\n", line.body));
    }
}

fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a string takes any text");
}
