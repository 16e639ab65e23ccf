//! Resolves each parameter from the highest-priority source that has a valid value.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
    fmt,
};

use super::parameter::{Kind, Parameter};
use super::settings::Config;
use super::source::{Given, Origin, Sources};
use super::table::{parameter, parameters};
use super::value::{FromValue, Value};

/// Text that stands for no value, in any case.
const NONE: &str = "none";

/// The configuration that holds, and how it came about.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    /// What the agent acts on.
    pub config: Config,
    /// What the sources say that could not be used, from the source that wins to the one that loses.
    pub problems: Vec<Problem>,
    /// All parameters, in the order of the table.
    pub settings: Vec<Setting>,
}

/// One parameter and the value that holds.
#[derive(Debug, Clone)]
pub struct Setting {
    pub parameter: &'static Parameter,
    /// The value as it was written.
    pub text: String,
    /// The value as it was read.
    pub value: Value,
    /// Where it came from.
    pub origin: Origin,
}

/// Something in a source that could not be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Name of the parameter; as it was written, if there is none of that name.
    pub parameter: String,
    /// The text that was given for it.
    pub value: String,
    /// Where that came from.
    pub origin: Origin,
    /// Why it could not be used.
    pub reason: Reason,
    /// Whether the agent must not run until it is put right.
    pub fatal: bool,
}

/// Why something in a source could not be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// The parameter does not take such values.
    Invalid {
        /// What it takes.
        expected: String,
    },
    /// The parameter cannot do without a value.
    Required,
    /// The datastore cannot set the parameter.
    LocalOnly,
    /// There is no parameter of this name.
    Unknown,
    /// The source gives another value under the same name in another spelling.
    Repeated,
}

/// Values of all parameters, for the types that are made from them.
pub(super) struct Values<'a>(HashMap<&'static str, &'a Value>);

/// Finds the value of each parameter: of the first source that has a good one, else the default.
///
/// An empty text counts as absent. The value `none` takes away a default.
pub fn resolve(sources: &Sources) -> Resolved {
    let mut problems = Vec::new();
    let settings = settings(sources, &|_| true, &mut problems);
    let mut config = Config::from_values(&Values::new(&settings));
    config.encap.allows_cleartext = sources.allows_cleartext;
    Resolved {
        config,
        problems,
        settings,
    }
}

/// The settings of the parameters whose names are wanted.
pub(super) fn settings(
    sources: &Sources,
    is_wanted: &dyn Fn(&str) -> bool,
    problems: &mut Vec<Problem>,
) -> Vec<Setting> {
    let mut found: HashMap<&'static str, Setting> = HashMap::new();
    for (origin, given) in sources.by_precedence() {
        let given = given.into_iter().filter(|(name, _)| is_wanted(name));
        for (parameter, given) in known(origin, given, problems) {
            let text = given.text();
            match read(parameter, &given, &text, origin) {
                Ok(value) => {
                    found.entry(parameter.name).or_insert_with(|| Setting {
                        parameter,
                        text: text.into_owned(),
                        value,
                        origin,
                    });
                }
                Err(problem) => problems.push(problem),
            }
        }
    }
    parameters()
        .filter(|parameter| is_wanted(parameter.name))
        .map(|parameter| {
            found
                .remove(parameter.name)
                .unwrap_or_else(|| Setting::default_of(parameter))
        })
        .collect()
}

/// What one source gives by parameter, without what is empty.
fn known<'a>(
    origin: Origin,
    given: impl Iterator<Item = (&'a str, Cow<'a, Given>)>,
    problems: &mut Vec<Problem>,
) -> Vec<(&'static Parameter, Cow<'a, Given>)> {
    let mut known: BTreeMap<&'static str, (&'static Parameter, Cow<'a, Given>)> = BTreeMap::new();
    for (name, given) in given.filter(|(_, given)| !given.text().is_empty()) {
        let mut complain = |name: &str, value: &Given, reason| {
            problems.push(Problem {
                parameter: name.to_owned(),
                value: value.text().into_owned(),
                origin,
                reason,
                fatal: false,
            });
        };
        let Some(parameter) = parameter(name) else {
            complain(name, &given, Reason::Unknown);
            continue;
        };
        // The name as the table spells it wins; of others, the first.
        match known.get(parameter.name) {
            Some(_) if name != parameter.name => complain(name, &given, Reason::Repeated),
            earlier => {
                if let Some((_, earlier)) = earlier {
                    complain(parameter.name, earlier, Reason::Repeated);
                }
                known.insert(parameter.name, (parameter, given));
            }
        }
    }
    known.into_values().collect()
}

fn read(
    parameter: &'static Parameter,
    given: &Given,
    text: &str,
    origin: Origin,
) -> Result<Value, Problem> {
    let is_none = text.eq_ignore_ascii_case(NONE);
    let result = if parameter.local_only && !origin.is_local() {
        Err((Reason::LocalOnly, false))
    } else if is_none && parameter.required {
        Err((Reason::Required, true))
    } else if is_none {
        Ok(Value::Unset)
    } else {
        given.value(parameter.kind).map_err(|_| {
            let expected = parameter.kind.expected();
            (Reason::Invalid { expected }, parameter.fatal)
        })
    };
    // A URL that is refused may be so because there is a password in it.
    let shown = match parameter.kind {
        Kind::Endpoints => "…",
        _ => text,
    };
    result.map_err(|(reason, fatal)| Problem {
        parameter: parameter.name.to_owned(),
        value: shown.to_owned(),
        origin,
        reason,
        fatal,
    })
}

// === impl Resolved ===

impl Resolved {
    /// Whether the agent must not run with this.
    pub fn is_fatal(&self) -> bool {
        self.problems.iter().any(|problem| problem.fatal)
    }

    /// The setting of a parameter, whose name may be in any case.
    pub fn setting(&self, name: &str) -> Option<&Setting> {
        self.settings
            .iter()
            .find(|setting| setting.parameter.name.eq_ignore_ascii_case(name))
    }

    /// Where the value of a parameter came from.
    pub fn origin(&self, name: &str) -> Option<Origin> {
        self.setting(name).map(|setting| setting.origin)
    }
}

// === impl Setting ===

impl Setting {
    fn default_of(parameter: &'static Parameter) -> Self {
        Self {
            parameter,
            text: parameter.default.to_owned(),
            value: parameter.default_value(),
            origin: Origin::Default,
        }
    }
}

impl PartialEq for Setting {
    fn eq(&self, other: &Self) -> bool {
        self.parameter.name == other.parameter.name
            && self.text == other.text
            && self.origin == other.origin
    }
}

// === impl Problem ===

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            parameter,
            value,
            origin,
            ..
        } = self;
        write!(f, "{parameter}: `{value}` from {origin} is not used: ")?;
        match &self.reason {
            Reason::Invalid { expected } => write!(f, "expected {expected}"),
            Reason::Required => f.write_str("this parameter cannot do without a value"),
            Reason::LocalOnly => {
                f.write_str("only the environment and the configuration file can set it")
            }
            Reason::Unknown => f.write_str("there is no parameter of this name"),
            Reason::Repeated => f.write_str("the same source sets it in another spelling, too"),
        }
    }
}

// === impl Values ===

impl<'a> Values<'a> {
    pub(super) fn new(settings: &'a [Setting]) -> Self {
        let by_name = |setting: &'a Setting| (setting.parameter.name, &setting.value);
        Self(settings.iter().map(by_name).collect())
    }

    /// The value of a parameter, as a type that its kind fits.
    pub(super) fn get<T: FromValue>(&self, name: &str) -> T {
        self.0
            .get(name)
            .and_then(|value| T::from_value(value))
            .expect("every field names a parameter whose kind fits its type, whatever its value")
    }
}
