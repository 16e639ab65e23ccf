//! Versions of the CNI specification.

use std::fmt;
use std::str::FromStr;

/// A version of the specification that the plugins speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CniVersion {
    V0_1_0,
    V0_2_0,
    V0_3_0,
    /// 0.3.1
    V0_3_1,
    V0_4_0,
    /// 1.0.0
    V1_0_0,
    V1_1_0,
}

/// A version that the plugins do not speak.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "unsupported CNI version `{0}`: supported are 0.1.0, 0.2.0, 0.3.0, 0.3.1, 0.4.0, 1.0.0 and 1.1.0"
)]
pub struct UnknownVersion(pub String);

impl CniVersion {
    /// All of them, oldest first.
    pub const ALL: [Self; 7] = [
        Self::V0_1_0,
        Self::V0_2_0,
        Self::V0_3_0,
        Self::V0_3_1,
        Self::V0_4_0,
        Self::V1_0_0,
        Self::V1_1_0,
    ];

    /// What a configuration means that names no version.
    pub const UNNAMED: Self = Self::V0_2_0;

    pub const NEWEST: Self = Self::V1_1_0;

    /// As the specification writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V0_1_0 => "0.1.0",
            Self::V0_2_0 => "0.2.0",
            Self::V0_3_0 => "0.3.0",
            Self::V0_3_1 => "0.3.1",
            Self::V0_4_0 => "0.4.0",
            Self::V1_0_0 => "1.0.0",
            Self::V1_1_0 => "1.1.0",
        }
    }
}

impl fmt::Display for CniVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for CniVersion {
    type Err = UnknownVersion;

    fn from_str(text: &str) -> Result<Self, UnknownVersion> {
        if text.is_empty() {
            return Ok(Self::UNNAMED);
        }
        Self::ALL
            .into_iter()
            .find(|version| version.as_str() == text)
            .ok_or_else(|| UnknownVersion(text.to_owned()))
    }
}
