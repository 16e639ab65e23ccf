//! The programs that others use: `nft`, `iptables-restore` and `ipset`.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::work::{CHAINS, CHANGE, MEMBERS, PREFIX, address, chain, filters, prefix};
use crate::{Measurement, Outcome, Report, timed};

pub(crate) const MEASUREMENTS: &[Measurement] = &[
    ("nft/rules(10k)", nft_rules),
    ("nft/addresses(100k)", |report| {
        nft_set(report, "", &|n| address(n).to_string(), 5)
    }),
    ("nft/prefixes(100k)", |report| {
        nft_set(
            report,
            "flags interval;",
            &|n| format!("{}/{PREFIX}", prefix(n)),
            1,
        )
    }),
    ("nft/hashed-prefixes(100k)", |report| {
        nft_set(report, "", &|n| prefix(n).to_string(), 5)
    }),
    ("iptables-legacy/rules(10k)", |report| {
        iptables_rules(report, "legacy")
    }),
    ("iptables-nft/rules(10k)", |report| {
        iptables_rules(report, "nft")
    }),
    ("ipset/addresses(100k)", |report| {
        ipset(report, "hash:ip", &|n| address(n).to_string())
    }),
    ("ipset/prefixes(100k)", |report| {
        ipset(report, "hash:net", &|n| format!("{}/{PREFIX}", prefix(n)))
    }),
];

const RUNS: u32 = 3;
const CHANGES: u32 = 5;

/// How long a program takes with this input. The input is written to it whole beforehand, as a file.
fn run(program: &str, arguments: &[&str], input: &str) -> Outcome<Duration> {
    let mut file = tempfile::tempfile()?;
    file.write_all(input.as_bytes())?;
    std::io::Seek::rewind(&mut file)?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdin(Stdio::from(file))
        .stdout(Stdio::null());
    let (time, status) = timed(|| Ok(command.status()?))?;
    if !status.success() {
        return Err(format!("`{program}` failed: {status}").into());
    }
    Ok(time)
}

fn times(count: u32, mut measure: impl FnMut(u32) -> Outcome<Duration>) -> Outcome<Vec<Duration>> {
    (0..count).map(&mut measure).collect()
}

fn nft_chain(number: u32) -> String {
    let name = chain(number);
    let mut text = format!("add chain ip bench {name}\n");
    for filter in filters(number) {
        let (source, port, comment) = (filter.source, filter.port, filter.comment);
        let _ = writeln!(
            text,
            "add rule ip bench {name} ip saddr {source} tcp dport {port} counter accept comment \"{comment}\""
        );
    }
    text
}

fn nft_rules(report: &Report) -> Outcome {
    let all: String = (0..CHAINS).map(nft_chain).collect();
    // Each run begins with the table that the last one left, as an empty one.
    let load = |_| {
        run(
            "nft",
            &["-f", "-"],
            "add table ip bench\ndelete table ip bench\n",
        )?;
        run("nft", &["-f", "-"], &format!("add table ip bench\n{all}"))
    };
    report.time("create", times(RUNS, load)?)?;
    let add = |i| run("nft", &["-f", "-"], &nft_chain(CHAINS + i));
    report.time("add-1-chain-10-rules", times(CHANGES, add)?)?;
    report.time(
        "read",
        times(RUNS, |_| run("nft", &["list", "ruleset"], ""))?,
    )
}

fn nft_set(report: &Report, flags: &str, element: &dyn Fn(u32) -> String, changes: u32) -> Outcome {
    let list = |first: u32, count: u32| {
        let all: Vec<String> = (first..first + count).map(element).collect();
        all.join(", ")
    };
    let all = list(0, MEMBERS);
    let load = |_| {
        run(
            "nft",
            &["-f", "-"],
            "add table ip bench\ndelete table ip bench\n",
        )?;
        let set = format!("add table ip bench\nadd set ip bench s {{ type ipv4_addr; {flags} }}\n");
        run(
            "nft",
            &["-f", "-"],
            &format!("{set}add element ip bench s {{ {all} }}\n"),
        )
    };
    report.time("create", times(RUNS, load)?)?;
    let (mut added, mut deleted) = (Vec::new(), Vec::new());
    for i in 0..changes {
        let change = list(MEMBERS + i * CHANGE, CHANGE);
        let edit = |verb| {
            run(
                "nft",
                &["-f", "-"],
                &format!("{verb} element ip bench s {{ {change} }}\n"),
            )
        };
        added.push(edit("add")?);
        deleted.push(edit("delete")?);
    }
    report.time("add-100", added)?;
    report.time("delete-100", deleted)?;
    report.time(
        "read",
        times(1, |_| run("nft", &["list", "set", "ip", "bench", "s"], ""))?,
    )
}

fn iptables_chain(number: u32) -> String {
    let name = chain(number);
    let mut text = format!(":{name} - [0:0]\n");
    for filter in filters(number) {
        let (source, port, comment) = (filter.source, filter.port, filter.comment);
        let _ = writeln!(
            text,
            "-A {name} -s {source}/32 -p tcp -m tcp --dport {port} -m comment --comment \"{comment}\" -j ACCEPT"
        );
    }
    text
}

fn iptables_rules(report: &Report, kind: &str) -> Outcome {
    let restore = format!("iptables-{kind}-restore");
    let whole = |chains: &str| format!("*filter\n{chains}COMMIT\n");
    // Declarations come before rules: a line that begins with a colon, then those that begin with a dash.
    let sorted = |text: &str| {
        let (chains, rules): (Vec<&str>, Vec<&str>) =
            text.lines().partition(|l| l.starts_with(':'));
        whole(&format!("{}\n{}\n", chains.join("\n"), rules.join("\n")))
    };
    let all = sorted(&(0..CHAINS).map(iptables_chain).collect::<String>());
    let load = |_| {
        run(&restore, &[], &whole(""))?;
        run(&restore, &[], &all)
    };
    report.time("create", times(RUNS, load)?)?;
    let add = |i| {
        run(
            &restore,
            &["--noflush"],
            &sorted(&iptables_chain(CHAINS + i)),
        )
    };
    report.time("add-1-chain-10-rules", times(CHANGES, add)?)?;
    let save = format!("iptables-{kind}-save");
    report.time("read", times(RUNS, |_| run(&save, &[], ""))?)
}

fn ipset(report: &Report, kind: &str, element: &dyn Fn(u32) -> String) -> Outcome {
    let edit = |verb: &str, first: u32, count: u32| {
        let mut text = String::new();
        for number in first..first + count {
            let _ = writeln!(text, "{verb} s {}", element(number));
        }
        text
    };
    let all = edit("add", 0, MEMBERS);
    let load = |i| {
        if i > 0 {
            run("ipset", &["destroy", "s"], "")?;
        }
        run(
            "ipset",
            &["restore"],
            &format!("create s {kind} maxelem 1048576\n{all}"),
        )
    };
    report.time("create", times(RUNS, load)?)?;
    let (mut added, mut deleted) = (Vec::new(), Vec::new());
    for i in 0..CHANGES {
        let first = MEMBERS + i * CHANGE;
        added.push(run("ipset", &["restore"], &edit("add", first, CHANGE))?);
        deleted.push(run("ipset", &["restore"], &edit("del", first, CHANGE))?);
    }
    report.time("add-100", added)?;
    report.time("delete-100", deleted)?;
    report.time("read", times(1, |_| run("ipset", &["save", "s"], ""))?)
}
