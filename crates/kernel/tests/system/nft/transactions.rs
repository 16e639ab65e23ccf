//! Transactions: all or nothing, in order, with errors that name what was refused; and what is read back.

mod chains;
mod errors;
mod reading;
mod rules;

use tortie_kernel::nft::{Expr, Rule, Transaction, Verdict};

use crate::nft::support::{World, in_world, table};

/// A rule that is told from others by its comment.
fn marked(comment: &str) -> Rule {
    Rule::new([Expr::Counter, Expr::Verdict(Verdict::Accept)]).with_comment(comment)
}

/// Runs a test in a namespace whose table has the empty chain `c`.
#[track_caller]
fn with_chain<T: Send>(test: impl FnOnce(&mut World) -> T + Send) -> T {
    in_world(|world| {
        world
            .commit(|transaction| {
                transaction.add_table(&table());
                transaction.add_chain(&table(), "c");
            })
            .unwrap();
        test(world)
    })
}

impl World {
    #[track_caller]
    fn must_commit(&mut self, fill: impl FnOnce(&mut Transaction)) {
        self.commit(fill).unwrap();
    }

    /// The comments of the rules of `c`, in order.
    fn comments(&mut self) -> Vec<String> {
        let rules = self.rules(&table(), Some("c"));
        rules
            .into_iter()
            .map(|rule| rule.comment.unwrap_or_default())
            .collect()
    }

    fn handle_of(&mut self, comment: &str) -> u64 {
        let rules = self.rules(&table(), Some("c"));
        let found = rules
            .iter()
            .find(|rule| rule.comment.as_deref() == Some(comment));
        found.unwrap().handle
    }
}
