//! Worlds for the tests: a namespace, a kind of iptables, an IP version.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::Arc;

use tortie_dataplane::iptables::{Backend, IptablesDriver, Options, Variant};
use tortie_dataplane::{Batch, Driver as _, Members, SetChange, SetKind};
use tortie_engine::message::Member;
use tortie_kernel::namespace;
use tortie_rules::rule::{Action, Match, Side};
use tortie_rules::{Chain, Hook, IpVersion, Rule, Table};

/// A fresh network namespace, as seen by one kind of iptables of one IP version.
#[derive(Clone, Copy)]
pub(crate) struct Node {
    pub(crate) variant: Variant,
    pub(crate) ip_version: IpVersion,
}

/// Rules at one time: by handles where there are some, else by counters.
pub(crate) enum Marked {
    Counters,
    Handles(BTreeSet<String>),
}

/// Runs a test with both kinds and both versions, each in a namespace of its own.
pub(crate) fn everywhere(test: impl Fn(Node) + Sync) {
    for variant in [Variant::Legacy, Variant::Nft] {
        with_both_versions(variant, &test);
    }
}

/// Runs a test with both versions, each in a namespace of its own.
pub(crate) fn with_both_versions(variant: Variant, test: impl Fn(Node) + Sync) {
    for ip_version in [IpVersion::V4, IpVersion::V6] {
        let node = Node {
            variant,
            ip_version,
        };
        namespace::run_in_new(|| test(node)).expect("tests make network namespaces");
    }
}

impl Node {
    pub(crate) fn options(self) -> Options {
        Options {
            backend: Backend::Only(self.variant),
            ..Options::new(self.ip_version)
        }
    }

    pub(crate) fn driver(self) -> IptablesDriver {
        let driver = IptablesDriver::new(&self.options()).unwrap();
        assert_eq!(driver.variant(), self.variant);
        driver
    }

    /// A driver that has applied this.
    pub(crate) fn driver_with(self, full: &Batch) -> IptablesDriver {
        let mut driver = self.driver();
        driver.apply(full).unwrap();
        assert_eq!(driver.compare(full).unwrap(), []);
        assert_eq!(driver.check().unwrap(), []);
        driver
    }

    fn program(self, task: &str) -> String {
        let family = match self.ip_version {
            IpVersion::V4 => "iptables",
            IpVersion::V6 => "ip6tables",
        };
        let variant = match self.variant {
            Variant::Legacy => "legacy",
            Variant::Nft => "nft",
        };
        format!("{family}-{variant}{task}")
    }

    /// Runs `iptables` as somebody else would.
    pub(crate) fn iptables(self, arguments: &str) {
        let mut words = vec!["-w"];
        words.extend(arguments.split(' '));
        run(&self.program(""), &words, "");
    }

    /// The rules of a table, with their counters.
    pub(crate) fn rules(self, table: Table) -> Vec<String> {
        let text = run(&self.program("-save"), &["-c", "-t", table.name()], "");
        let rules = text.lines().filter(|line| line.contains("-A "));
        rules.map(str::to_owned).collect()
    }

    /// The rules of a chain in order, from the action on.
    pub(crate) fn targets(self, table: Table, chain: &str) -> Vec<String> {
        let start = format!(" -A {chain} ");
        let rules = self.rules(table).into_iter();
        let rules = rules.filter(|rule| rule.contains(&start));
        rules
            .map(|rule| {
                let at = rule.find(" -j ").or_else(|| rule.find(" -g "));
                rule[at.expect("rules have an action") + 4..].to_owned()
            })
            .collect()
    }

    /// The chains of a table that are ours.
    pub(crate) fn chains(self, table: Table) -> Vec<String> {
        let text = run(&self.program("-save"), &["-t", table.name()], "");
        let names = text
            .lines()
            .filter_map(|line| line.strip_prefix(':')?.split(' ').next());
        let mut names: Vec<_> = names
            .filter(|name| name.starts_with("cali"))
            .map(str::to_owned)
            .collect();
        names.sort_unstable();
        names
    }

    /// The rules of a table as they are now, to tell later which were written again.
    pub(crate) fn mark_rules(self, table: Table) -> Marked {
        if self.variant == Variant::Nft {
            return Marked::Handles(self.handles(table));
        }
        // As if each had met packets; one that is written again has not.
        let text = run(&self.program("-save"), &["-c", "-t", table.name()], "");
        let marked = text.replace("[0:0] -A", "[5:700] -A");
        run(
            &self.program("-restore"),
            &["-w", "--counters", "-T", table.name()],
            &marked,
        );
        Marked::Counters
    }

    /// How many rules of a table were written since they were marked.
    pub(crate) fn written_rules(self, table: Table, marked: &Marked) -> usize {
        match marked {
            Marked::Counters => {
                let rules = self.rules(table);
                rules
                    .iter()
                    .filter(|rule| !rule.starts_with("[5:700] "))
                    .count()
            }
            Marked::Handles(before) => self.handles(table).difference(before).count(),
        }
    }

    /// By which nftables tells rules apart.
    fn handles(self, table: Table) -> BTreeSet<String> {
        let family = match self.ip_version {
            IpVersion::V4 => "ip",
            IpVersion::V6 => "ip6",
        };
        let text = run("nft", &["-a", "list", "table", family, table.name()], "");
        let rules = text.lines().filter(|line| line.starts_with("\t\t"));
        let handles = rules.filter_map(|line| line.split(" # handle ").nth(1));
        handles.map(str::to_owned).collect()
    }

    /// An address of this IP version.
    pub(crate) fn address(self, number: u32) -> Member {
        let text = match self.ip_version {
            IpVersion::V4 => std::net::IpAddr::from((0x0a00_0000_u32 + number).to_be_bytes()),
            IpVersion::V6 => {
                std::net::IpAddr::from((0xfd00_u128 << 112 | u128::from(number)).to_be_bytes())
            }
        };
        Member::Net(text.into())
    }

    pub(crate) fn addresses(self, numbers: impl IntoIterator<Item = u32>) -> Vec<Member> {
        numbers
            .into_iter()
            .map(|number| self.address(number))
            .collect()
    }

    /// The name of a set of this IP version.
    pub(crate) fn set_name(self, name: &str) -> Arc<str> {
        match self.ip_version {
            IpVersion::V4 => format!("cali40{name}").into(),
            IpVersion::V6 => format!("cali60{name}").into(),
        }
    }

    pub(crate) fn set(self, name: &str, kind: SetKind, change: Members) -> SetChange {
        SetChange {
            name: self.set_name(name),
            kind,
            change,
        }
    }

    /// A set of networks with these members.
    pub(crate) fn networks(self, name: &str, numbers: impl IntoIterator<Item = u32>) -> SetChange {
        self.set(
            name,
            SetKind::Networks,
            Members::All(self.addresses(numbers)),
        )
    }

    /// Drops what comes from a set.
    pub(crate) fn drop_from(self, set: &str) -> Rule {
        Rule::when([Match::Set(Side::Source, self.set_name(set))], Action::Drop)
    }
}

/// Runs a program and gives what it printed.
#[track_caller]
pub(crate) fn run(program: &str, arguments: &[&str], input: &str) -> String {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program is installed");
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{program} {arguments:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The members of a set, in order.
pub(crate) fn members(set: &str) -> Vec<String> {
    let text = run("ipset", &["save", set], "");
    let members = text
        .lines()
        .filter_map(|line| line.strip_prefix("add ")?.split(' ').nth(1));
    let mut members: Vec<_> = members.map(str::to_owned).collect();
    members.sort_unstable();
    members
}

/// The names of all sets.
pub(crate) fn set_names() -> Vec<String> {
    let text = run("ipset", &["list", "-name"], "");
    let mut names: Vec<_> = text.lines().map(str::to_owned).collect();
    names.sort_unstable();
    names
}

pub(crate) fn jump(chain: &str) -> Rule {
    Rule::always(Action::Jump(chain.into()))
}

pub(crate) fn mark(bits: u32) -> Rule {
    Rule::when([Match::Mark(bits, bits)], Action::Return)
}

pub(crate) fn filter(name: &str, rules: Vec<Rule>) -> Chain {
    Chain::new(Table::Filter, name, rules)
}

/// A hook at the beginning of a chain.
pub(crate) fn first(table: Table, chain: &'static str, target: &str) -> Hook {
    Hook {
        table,
        chain,
        first: vec![jump(target)],
        last: Vec::new(),
    }
}

/// Chains in all tables that are hooked, refer to each other and to a set.
pub(crate) fn full(node: Node) -> Batch {
    let chains = vec![
        Chain::new(
            Table::Raw,
            "cali-PREROUTING",
            vec![Rule::always(Action::NoTrack)],
        ),
        Chain::new(Table::Mangle, "cali-POSTROUTING", vec![mark(1)]),
        Chain::new(
            Table::Nat,
            "cali-POSTROUTING",
            vec![Rule::always(Action::Masquerade(None))],
        ),
        filter("cali-FORWARD", vec![jump("cali-a"), jump("cali-b")]),
        filter(
            "cali-a",
            vec![mark(1), mark(2), mark(4).note("the last one")],
        ),
        filter("cali-b", vec![node.drop_from("set")]),
        filter("cali-empty", Vec::new()),
    ];
    let accept = Rule::when([Match::Mark(8, 8)], Action::Accept);
    Batch {
        is_full: true,
        hooks: vec![
            first(Table::Raw, "PREROUTING", "cali-PREROUTING"),
            first(Table::Mangle, "POSTROUTING", "cali-POSTROUTING"),
            Hook {
                table: Table::Nat,
                chain: "POSTROUTING",
                first: Vec::new(),
                last: vec![jump("cali-POSTROUTING")],
            },
            Hook {
                table: Table::Filter,
                chain: "FORWARD",
                first: vec![jump("cali-FORWARD"), mark(16)],
                last: vec![accept, Rule::always(Action::SetMark(8))],
            },
        ],
        sets: vec![node.networks("set", 1..4)],
        chains,
        ..Batch::default()
    }
}

/// Changes to chains only.
pub(crate) fn chains(chains: Vec<Chain>) -> Batch {
    Batch {
        chains,
        ..Batch::default()
    }
}

/// Changes to sets only.
pub(crate) fn sets(sets: Vec<SetChange>) -> Batch {
    Batch {
        sets,
        ..Batch::default()
    }
}
