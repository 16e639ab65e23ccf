//! What can go wrong, with the codes by which a runtime tells failures apart.

use std::error::Error as StdError;
use std::fmt;

use serde_json::{Value, json};
use tortie_error::Causes;

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

type Cause = Box<dyn StdError + Send + Sync>;

/// Why an operation failed.
#[derive(Debug)]
pub struct Error {
    code: Code,
    message: String,
    source: Option<Cause>,
}

/// The class of a failure. Below 100 they are the specification's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// The version of the specification is not one that the plugin speaks.
    IncompatibleVersion = 1,
    /// A field of the configuration asks for what the plugin cannot do.
    UnsupportedField = 2,
    /// Variables of the environment are missing or wrong.
    InvalidEnvironment = 4,
    /// The configuration could not be read.
    Io = 5,
    /// The configuration is not JSON of the right form.
    Decode = 6,
    /// The configuration is wrong.
    InvalidConfig = 7,
    /// The network namespace is wrong.
    InvalidNamespace = 8,
    /// The runtime should try again later.
    TryLater = 11,
    /// The plugin cannot serve an ADD now.
    NotAvailable = 50,
    /// Something else.
    Other = 100,
    /// The datastore refused or failed.
    Datastore = 101,
    /// There is no address.
    Address = 102,
    /// The kernel refused.
    Kernel = 103,
    /// What CHECK found is not as it should be.
    Unlike = 104,
}

impl Error {
    /// A failure without a deeper cause.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            source: None,
        }
    }

    /// The configuration is wrong.
    pub(crate) fn config(message: impl Into<String>) -> Self {
        Self::new(Code::InvalidConfig, message)
    }

    /// For `map_err`: says what was tried.
    pub(crate) fn of<E: Into<Cause>>(
        code: Code,
        message: impl Into<String>,
    ) -> impl FnOnce(E) -> Self {
        move |source| Self {
            code,
            message: message.into(),
            source: Some(source.into()),
        }
    }

    /// Its class.
    pub fn code(&self) -> Code {
        self.code
    }

    /// The same failure, of another class.
    pub(crate) fn with_code(self, code: Code) -> Self {
        Self { code, ..self }
    }

    /// Whether another write came first.
    pub(crate) fn is_conflict(&self) -> bool {
        let source = self.source.as_deref();
        let error = source.and_then(|error| error.downcast_ref());
        error.is_some_and(tortie_store::Error::is_conflict)
    }

    /// What a plugin prints for the runtime.
    pub fn to_json(&self, version: &str) -> Value {
        let message = Causes(self).to_string();
        let mut out = json!({ "cniVersion": version, "code": self.code as u32, "msg": message });
        if let Some(cause) = self.source() {
            out["details"] = Causes(cause).to_string().into();
        }
        out
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source
            .as_deref()
            .map(|source| source as &(dyn StdError + 'static))
    }
}

impl From<tortie_store::Error> for Error {
    fn from(error: tortie_store::Error) -> Self {
        let code = if error.is_retryable() || error.is_conflict() {
            Code::TryLater
        } else {
            Code::Datastore
        };
        Self::of(code, "the datastore did not do what was asked")(error)
    }
}
