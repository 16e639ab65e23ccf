//! A world to test in: an empty network namespace, a socket, and `nft` as the second opinion.

use std::io::Write as _;
use std::process::{Command, Stdio};

use tortie_kernel::namespace;
use tortie_kernel::nft::{
    Base, BaseChain, ChainKind, Error, Expr, Family, Hook, Place, Policy, Register, Rule, Socket,
    Table, Transaction,
};

pub(crate) struct World {
    pub(crate) socket: Socket,
}

/// Runs a test in a new network namespace.
#[track_caller]
pub(crate) fn in_world<T: Send>(test: impl FnOnce(&mut World) -> T + Send) -> T {
    namespace::run_in_new(|| {
        let socket = Socket::open().unwrap();
        test(&mut World { socket })
    })
    .expect("tests of the kernel need the right to make a network namespace: run them as root")
}

impl World {
    /// Commits what `fill` adds.
    pub(crate) fn commit(&mut self, fill: impl FnOnce(&mut Transaction)) -> Result<(), Error> {
        let mut transaction = Transaction::new();
        fill(&mut transaction);
        self.socket.commit(&transaction).map(drop)
    }

    /// What a program prints, in this namespace.
    #[expect(
        clippy::unused_self,
        reason = "the namespace is that of the thread that made it"
    )]
    pub(crate) fn nft(&self, arguments: &[&str]) -> String {
        let output = Command::new("nft").args(arguments).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "nft {arguments:?}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Has `nft` read a ruleset.
    #[expect(
        clippy::unused_self,
        reason = "the namespace is that of the thread that made it"
    )]
    pub(crate) fn nft_load(&self, ruleset: &str) {
        let mut child = Command::new("nft")
            .args(["-f", "-"])
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(ruleset.as_bytes()).unwrap();
        drop(input);
        let output = child.wait_with_output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{ruleset}\n{errors}");
    }

    /// The lines of a chain that are rules, with their handles.
    pub(crate) fn listed_rules(&self, table: &Table, chain: &str) -> Vec<(String, u64)> {
        let family = table.family.to_string();
        let listing = self.nft(&["-a", "list", "chain", &family, &table.name, chain]);
        listing
            .lines()
            .filter(|line| {
                !line.contains('{') || line.contains(" # handle ") && line.starts_with("\t\t")
            })
            .filter_map(|line| line.trim().rsplit_once(" # handle "))
            .map(|(rule, handle)| (rule.to_owned(), handle.parse().unwrap()))
            .collect()
    }

    /// The rules of a table or chain, with handle, userdata and expressions.
    pub(crate) fn rules(&mut self, table: &Table, chain: Option<&str>) -> Vec<OwnedRule> {
        let push = |all: &mut Vec<OwnedRule>, rule: tortie_kernel::nft::RuleInKernel<'_>| {
            all.push(OwnedRule {
                chain: rule.chain.to_owned(),
                handle: rule.handle,
                comment: rule.comment().map(str::to_owned),
                expressions: rule.expressions.to_vec(),
            });
        };
        self.socket.rules(table, chain, push).unwrap()
    }
}

#[derive(Debug, PartialEq, Eq, Clone)]
pub(crate) struct OwnedRule {
    pub(crate) chain: String,
    pub(crate) handle: u64,
    pub(crate) comment: Option<String>,
    pub(crate) expressions: Vec<u8>,
}

pub(crate) fn table() -> Table {
    Table::new(Family::Ip, "t")
}

pub(crate) fn base_chain(kind: ChainKind, hook: Hook, priority: i32) -> BaseChain {
    BaseChain {
        name: "c".into(),
        kind,
        hook,
        priority,
        policy: Policy::Accept,
    }
}

/// Loads bytes of the network header.
pub(crate) fn network(offset: u32, length: u32) -> Expr {
    load(Base::Network, offset, length, Register::FIRST)
}

/// Loads bytes of the transport header.
pub(crate) fn transport(offset: u32, length: u32) -> Expr {
    load(Base::Transport, offset, length, Register::FIRST)
}

pub(crate) fn load(base: Base, offset: u32, length: u32, to: Register) -> Expr {
    Expr::Payload {
        base,
        offset,
        length,
        to,
    }
}

/// Adds the rules one after the other at the end of a chain.
pub(crate) fn append(transaction: &mut Transaction, table: &Table, chain: &str, rules: &[Rule]) {
    for rule in rules {
        transaction.add_rule(table, chain, Place::Last, rule);
    }
}
