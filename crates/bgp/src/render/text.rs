//! A text that grows line by line.

use std::fmt::{self, Write as _};

#[derive(Debug, Default)]
pub(super) struct Text(String);

impl Text {
    pub(super) fn push(&mut self, line: fmt::Arguments) {
        writeln!(self.0, "{line}").expect("a string takes any text");
    }

    pub(super) fn push_str(&mut self, lines: &str) {
        self.0.push_str(lines);
    }

    pub(super) fn finish(self) -> String {
        self.0
    }
}

/// Adds a line to a [`Text`].
macro_rules! line {
    ($text:expr, $($format:tt)*) => {
        $text.push(format_args!($($format)*))
    };
}

pub(super) use line;
