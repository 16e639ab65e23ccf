//! What happens, for people.

use std::io::Write;

use anyhow::Result;
use clap::builder::styling::{AnsiColor, Style};
use tortie_engine::verdict::Outcome;
use tortie_variables as variables;

use super::cast::{CAST, Cell, IpVersion, Protocol};
use super::report::{CellReport, ChangeReport, Explanation, Report, StepReport};
use super::script::Step;
use crate::args::{Demo, DemoDataplane};

const GOOD: Style = AnsiColor::Green.on_default().bold();
const BAD: Style = AnsiColor::Red.on_default().bold();
const STRONG: Style = Style::new().bold();
const WEAK: Style = Style::new().dimmed();

/// The width of the names of rows, and of a pod's two columns.
const NAME: usize = 10;
const COLUMNS: [(Protocol, usize); 2] = [(Protocol::Tcp, 8), (Protocol::Udp, 5)];

/// Writes to the standard output as things happen.
pub(super) struct Text {
    out: anstream::AutoStream<std::io::Stdout>,
    marks: &'static Marks,
}

/// How cells look.
struct Marks {
    open: &'static str,
    closed: &'static str,
    /// A pod and itself.
    none: &'static str,
    line: &'static str,
}

const UNICODE: Marks = Marks {
    open: "✓",
    closed: "✗",
    none: "·",
    line: "│",
};

const ASCII: Marks = Marks {
    open: "+",
    closed: "x",
    none: ".",
    line: "|",
};

impl Text {
    pub(super) fn new() -> Self {
        Self {
            out: anstream::stdout(),
            marks: if is_utf8(|name| std::env::var(name).ok()) {
                &UNICODE
            } else {
                &ASCII
            },
        }
    }

    pub(super) fn opening(&mut self, args: &Demo) -> Result<()> {
        let dataplane = match args.dataplane {
            DemoDataplane::Nftables => "nftables",
            DemoDataplane::Iptables => "iptables and ipset",
        };
        let rights = if args.inside.own_users {
            "without root, in a user namespace"
        } else {
            "as root"
        };
        writeln!(
            self.out,
            "{STRONG}Four pods on this machine, real packets, policy enforced with {dataplane}, {rights}{STRONG:#}"
        )?;
        self.out.flush()?;
        Ok(())
    }

    pub(super) fn ready(&mut self, report: &Report) -> Result<()> {
        writeln!(self.out)?;
        for (role, pod) in CAST.iter().zip(&report.pods) {
            let addresses: Vec<String> = pod.addresses.iter().map(ToString::to_string).collect();
            let addresses = addresses.join(", ");
            let (name, interface) = (&pod.name, &pod.interface);
            writeln!(
                self.out,
                "  {name:<18}  {addresses:<10}  serves TCP {:<4} and UDP 53  {WEAK}{interface}{WEAK:#}",
                role.port
            )?;
        }
        writeln!(self.out, "  ready after {:.0} ms", report.ready_after_ms)?;
        self.out.flush()?;
        Ok(())
    }

    /// Tells what is about to happen.
    pub(super) fn step(&mut self, number: usize, step: &Step) -> Result<()> {
        writeln!(self.out)?;
        writeln!(self.out, "{STRONG}{number}. {}{STRONG:#}", step.title)?;
        for change in step.changes {
            writeln!(self.out)?;
            writeln!(self.out, "  tortie apply -f {}", change.file)?;
            for line in change.yaml.lines() {
                writeln!(self.out, "  {WEAK}{} {line}{WEAK:#}", self.marks.line)?;
            }
        }
        writeln!(self.out)?;
        self.out.flush()?;
        Ok(())
    }

    pub(super) fn step_done(&mut self, step: &StepReport, versions: &[IpVersion]) -> Result<()> {
        for change in &step.changes {
            self.change(change)?;
        }
        if !step.changes.is_empty() {
            writeln!(self.out)?;
        }
        for version in versions {
            self.matrix(step, *version, versions.len() > 1)?;
        }
        let (agree, all) = (step.verdicts_agree(), step.cells.len());
        let style = if agree == all { GOOD } else { BAD };
        writeln!(
            self.out,
            "  verdict agrees with packets: {style}{agree}/{all}{style:#}"
        )?;
        for cell in &step.cells {
            self.mistake(cell)?;
        }
        self.out.flush()?;
        Ok(())
    }

    pub(super) fn explanation(&mut self, explanation: &Explanation) -> Result<()> {
        writeln!(self.out)?;
        writeln!(self.out, "{STRONG}{}{STRONG:#}", explanation.command)?;
        writeln!(self.out)?;
        for line in String::from_utf8_lossy(&explanation.text).lines() {
            let indent = if line.is_empty() { "" } else { "  " };
            writeln!(self.out, "{indent}{line}")?;
        }
        self.out.flush()?;
        Ok(())
    }

    pub(super) fn ending(&mut self, report: &Report) -> Result<()> {
        let Report {
            probes,
            as_expected,
            verdicts_agree,
            seconds,
            ..
        } = report;
        let style = if report.is_right() { GOOD } else { BAD };
        writeln!(self.out)?;
        writeln!(
            self.out,
            "{style}{as_expected} of {probes} connections were as expected, and {verdicts_agree} of {probes} verdicts agree with the packets.{style:#} {seconds:.1} s in all."
        )?;
        self.out.flush()?;
        Ok(())
    }

    fn change(&mut self, change: &ChangeReport) -> Result<()> {
        let ChangeReport {
            file,
            enforced_after_ms,
            shown_by,
            opens,
        } = change;
        let what = if *opens { "passes" } else { "stops" };
        writeln!(
            self.out,
            "  {file:<17}  in force {STRONG}{enforced_after_ms:.1} ms{STRONG:#} after the write: {shown_by} {what}"
        )?;
        Ok(())
    }

    /// Rows are where connections come from, columns where they go to.
    fn matrix(&mut self, step: &StepReport, version: IpVersion, names_version: bool) -> Result<()> {
        let corner = match (version, names_version) {
            (_, false) => "from",
            (IpVersion::V4, true) => "IPv4 from",
            (IpVersion::V6, true) => "IPv6 from",
        };
        write!(self.out, "  {corner:<NAME$}")?;
        for role in &CAST {
            let width = COLUMNS.iter().map(|(_, width)| width).sum();
            write!(self.out, "  {:>width$}", role.name)?;
        }
        writeln!(self.out)?;
        write!(self.out, "  {WEAK}{:<NAME$}", "")?;
        for role in &CAST {
            write!(self.out, "  ")?;
            for (protocol, width) in COLUMNS {
                let heading = match protocol {
                    Protocol::Tcp => format!("TCP {}", role.port),
                    Protocol::Udp => "UDP".to_owned(),
                };
                write!(self.out, "{heading:>width$}")?;
            }
        }
        writeln!(self.out, "{WEAK:#}")?;
        for (from, role) in CAST.iter().enumerate() {
            write!(self.out, "  {:<NAME$}", role.name)?;
            for to in 0..CAST.len() {
                write!(self.out, "  ")?;
                for (protocol, width) in COLUMNS {
                    let wanted = Cell {
                        from,
                        to,
                        protocol,
                        version,
                    };
                    let cell = step.cells.iter().find(|held| held.cell == wanted);
                    self.cell(cell, width)?;
                }
            }
            writeln!(self.out)?;
        }
        writeln!(self.out)?;
        Ok(())
    }

    fn cell(&mut self, cell: Option<&CellReport>, width: usize) -> Result<()> {
        let (mark, style) = match cell {
            None => (self.marks.none, WEAK),
            Some(cell) if cell.packets == Outcome::Allow => (self.marks.open, GOOD),
            Some(_) => (self.marks.closed, BAD),
        };
        write!(self.out, "{style}{mark:>width$}{style:#}")?;
        Ok(())
    }

    /// Says what is wrong with a connection, if something is.
    fn mistake(&mut self, cell: &CellReport) -> Result<()> {
        let word = |outcome: &Outcome| match outcome {
            Outcome::Allow => "pass",
            Outcome::Deny => "do not pass",
        };
        let CellReport {
            from,
            to,
            port,
            expected,
            packets,
            verdict,
            ..
        } = cell;
        let protocol = cell.protocol.as_str();
        let version = u8::from(cell.ip_version);
        let what = format!("{protocol} {port} from {from} to {to} over IPv{version}");
        if packets != expected {
            let packets = word(packets);
            writeln!(
                self.out,
                "  {BAD}{what}: packets {packets}, which is wrong{BAD:#}"
            )?;
        }
        if packets != verdict {
            let (packets, verdict) = (word(packets), word(verdict));
            writeln!(
                self.out,
                "  {BAD}{what}: packets {packets}, but the verdict is that they {verdict}{BAD:#}"
            )?;
        }
        Ok(())
    }
}

/// Whether the terminal's characters are those of Unicode, as the environment says.
fn is_utf8(variable: impl Fn(&str) -> Option<String>) -> bool {
    let names = [variables::LC_ALL, variables::LC_CTYPE, variables::LANG];
    let mut values = names.into_iter().filter_map(variable);
    let locale = values.find(|value| !value.is_empty()).unwrap_or_default();
    let locale = locale.to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

#[cfg(test)]
mod tests {
    use super::is_utf8;

    #[track_caller]
    fn check(variables: &[(&str, &str)], expected: bool) {
        let value = |name: &str| {
            let found = variables.iter().find(|(held, _)| *held == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        assert_eq!(is_utf8(value), expected, "{variables:?}");
    }

    #[test]
    fn the_first_variable_that_is_set_decides() {
        check(&[], false);
        check(&[("LANG", "en_GB.UTF-8")], true);
        check(&[("LANG", "C.utf8")], true);
        check(&[("LANG", "en_GB.UTF-8"), ("LC_ALL", "C")], false);
        check(
            &[("LANG", "C"), ("LC_ALL", ""), ("LC_CTYPE", "C.UTF-8")],
            true,
        );
    }
}
