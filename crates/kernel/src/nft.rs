//! nftables: tables, chains, rules and sets, written in atomic transactions and read back.
//!
//! ```no_run
//! use tortie_kernel::nft::{Expr, Family, Place, Rule, Socket, Table, Transaction, Verdict};
//!
//! # fn main() -> Result<(), tortie_kernel::nft::Error> {
//! let mut socket = Socket::open()?;
//! let table = Table::new(Family::Ip, "calico");
//! let mut transaction = Transaction::new();
//! transaction.add_table(&table);
//! transaction.add_chain(&table, "cali-fw");
//! let rule = Rule::new([Expr::Counter, Expr::Verdict(Verdict::Accept)]).with_comment("everything");
//! transaction.add_rule(&table, "cali-fw", Place::Last, &rule);
//! socket.commit(&transaction)?;
//! # Ok(())
//! # }
//! ```
//!
//! # Invariants
//! - A transaction takes effect wholly or not at all, and an error names the operation that was refused.
//! - Expressions are written as the kernel dumps them: what was asked for and what is there are compared as bytes.

mod describe;
mod dump;
mod element;
mod error;
mod expr;
mod monitor;
mod number;
mod rule;
mod set;
mod socket;
mod table;
mod transaction;
mod value;
mod verdict;

pub use dump::{Chain, Counted, Generation, RuleInKernel, SetInKernel};
pub use element::{Element, Key};
pub use error::{Error, Result, Subject};
pub use expr::{
    Base, Checksum, Comparison, CtKey, Direction, Expr, FibKey, FibResult, IcmpUnreachable, Limit,
    LimitKind, Log, MetaKey, Nat, NatFlags, NatKind, Registers, Reject, SetReference,
};
pub use monitor::{Change, Changed, Monitor};
pub use rule::{Rule, same_rule};
pub use set::{Field, InlineSet, Set};
pub use socket::{Committed, Socket};
pub use table::{BaseChain, ChainKind, Family, Hook, Policy, Table};
pub use transaction::{Operation, Place, Transaction};
pub use value::{Register, Value};
pub use verdict::Verdict;
