//! What is known about one parameter: its name, the values it takes, its default, its meaning.

use super::value::Value;

/// Options of a parameter that switches something on or off.
pub(super) const TOGGLE: &[&str] = &["Enabled", "Disabled"];

/// One parameter of the node agent.
#[derive(Debug, Clone, Copy)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own, and any may go with any other"
)]
pub struct Parameter {
    /// Its name in files and resources; variables of the environment have it after `FELIX_`.
    pub name: &'static str,
    /// The values it takes.
    pub kind: Kind,
    /// Its value where nothing sets it; empty for none.
    pub default: &'static str,
    /// Whether the datastore cannot set it.
    pub local_only: bool,
    /// Whether `none` is refused.
    pub required: bool,
    /// Whether the agent must not run with a value that is refused.
    pub fatal: bool,
    /// Whether the agent does something with it.
    pub acted_on: bool,
    /// What is the case instead where the agent does nothing with it; else empty.
    pub consequence: &'static str,
    /// What it is for, in a few words.
    pub meaning: &'static str,
}

/// The values that a parameter takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Yes or no.
    Bool,
    /// A whole number within bounds, which belong to it.
    Int {
        /// The least number.
        min: i64,
        /// The greatest number.
        max: i64,
    },
    /// A time in seconds, with a fraction if need be.
    Seconds,
    /// A time in milliseconds, with a fraction if need be.
    Millis,
    /// Bits of a packet mark.
    Mask,
    /// One of some words, in any case.
    OneOf(&'static [&'static str]),
    /// Any text of one line.
    Text,
    /// What names of interfaces start with, one or several.
    InterfacePrefixes,
    /// Names of interfaces, or patterns between slashes.
    InterfacePatterns,
    /// The name of an interface; `+` at the end stands for anything.
    InterfaceName,
    /// A list of such names.
    InterfaceFilters,
    /// The name of a host, or an IPv4 address.
    HostName,
    /// An address or the name of a host to listen on.
    HostAddress,
    /// A host and a port.
    Authority,
    /// A number of log lines per unit of time.
    LogRate,
    /// An `OpenStack` region.
    Region,
    /// A regular expression.
    Regex,
    /// A path in the file system.
    Path,
    /// An IPv4 address.
    Ipv4,
    /// An IPv6 address.
    Ipv6,
    /// URLs of servers.
    Endpoints,
    /// Ports with protocol and peers.
    FailsafePorts,
    /// A port or a range of ports.
    PortRange,
    /// A list of ports and ranges of ports.
    PortRanges,
    /// A list of CIDRs and addresses.
    Cidrs,
    /// A range of routing tables.
    RouteTableRange,
    /// A list of ranges of routing tables.
    RouteTableRanges,
    /// A list of keys with values.
    Pairs,
    /// A list of keys with durations.
    Timeouts,
    /// A DSCP value.
    Dscp,
}

// === impl Parameter ===

impl Parameter {
    /// A parameter that any source can set to anything, `none` included, and that is not acted on.
    pub(super) const fn new(
        name: &'static str,
        kind: Kind,
        default: &'static str,
        meaning: &'static str,
    ) -> Self {
        Self {
            name,
            kind,
            default,
            local_only: false,
            required: false,
            fatal: false,
            acted_on: false,
            consequence: "",
            meaning,
        }
    }

    pub(super) const fn local_only(mut self) -> Self {
        self.local_only = true;
        self
    }

    pub(super) const fn required(mut self) -> Self {
        self.required = true;
        self
    }

    pub(super) const fn fatal(mut self) -> Self {
        self.fatal = true;
        self
    }

    pub(super) const fn acted_on(mut self) -> Self {
        self.acted_on = true;
        self
    }

    /// Nothing is done with it, and this is the case whatever it says.
    pub(super) const fn ignored(mut self, consequence: &'static str) -> Self {
        self.consequence = consequence;
        self
    }

    pub fn default_value(&self) -> Value {
        if self.default.is_empty() {
            return Value::Unset;
        }
        self.kind
            .parse(self.default)
            .unwrap_or_else(|_| Value::Text(self.default.to_owned()))
    }
}

// === impl Kind ===

impl Kind {
    pub(super) const ANY_INT: Self = Self::Int {
        min: i64::MIN,
        max: i64::MAX,
    };

    /// What a value should look like, to complete a sentence that starts with "expected".
    pub fn expected(self) -> String {
        let text = match self {
            Self::Bool => "`true` or `false`",
            Self::Int { min: i64::MIN, .. } => "a whole number",
            Self::Int { min, max: i64::MAX } => {
                return format!("a whole number of at least {min}");
            }
            Self::Int { min, max } => return format!("a whole number from {min} to {max}"),
            Self::Seconds => "seconds, such as `90` or `0.5`",
            Self::Millis => "milliseconds, such as `50`",
            Self::Mask => "a 32-bit mask with at least two bits set, such as `0xffff0000`",
            Self::OneOf(options) => return one_of(options),
            Self::Text => "a single line of text",
            Self::InterfacePrefixes => {
                "prefixes of interface names, separated by commas: up to 15 letters, digits, `-` or `_` each"
            }
            Self::InterfacePatterns => {
                "interface names or regular expressions between slashes, separated by commas"
            }
            Self::InterfaceName => "an interface name of up to 15 characters",
            Self::InterfaceFilters => {
                "interface names of up to 15 characters, separated by commas; `+` at the end stands for anything"
            }
            Self::HostName => "a host name or IPv4 address",
            Self::HostAddress => "an address or host name of up to 64 characters",
            Self::Authority => "a host and port, such as `127.0.0.1:2379`",
            Self::LogRate => {
                "a rate of up to 9999 per second, minute, hour or day, such as `10/minute`"
            }
            Self::Region => "a region name of up to 46 lower-case letters, digits and `-`",
            Self::Regex => "a regular expression",
            Self::Path => "a path",
            Self::Ipv4 => "an IPv4 address",
            Self::Ipv6 => "an IPv6 address",
            Self::Endpoints => "URLs such as `https://host:2379`, separated by commas",
            Self::FailsafePorts => {
                "ports such as `22`, `udp:53`, `tcp:10.0.0.0/8:22` or `tcp:[fd00::/8]:22`, separated by commas"
            }
            Self::PortRange => "a port or a range of ports such as `32768:60999`",
            Self::PortRanges => {
                "ports or ranges of ports such as `30000:32767`, separated by commas without spaces"
            }
            Self::Cidrs => "CIDRs or addresses, separated by commas",
            Self::RouteTableRange => "a range of routing tables within 1-250, such as `1-100`",
            Self::RouteTableRanges => {
                "ranges of routing tables such as `1-100,1000-1999`, with at most 65535 tables"
            }
            Self::Pairs => "`key=value` pairs, separated by commas",
            Self::Timeouts => "`key=duration` pairs such as `a=90s`, separated by commas",
            Self::Dscp => "a number from 0 to 63, or a DSCP name such as `AF21`",
        };
        text.to_owned()
    }
}

fn one_of(options: &[&str]) -> String {
    let quoted: Vec<String> = options.iter().map(|option| format!("`{option}`")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}
