//! Where a resource stands: the file, the document in it, and the lines of its fields.

use std::sync::{Arc, OnceLock};

use tortie_api::yaml::Lines;

/// A text that was read.
#[derive(Debug)]
pub(crate) struct Source {
    /// The file, or `stdin`.
    name: String,
    text: String,
    /// Found out for the first problem.
    lines: OnceLock<Vec<Lines>>,
}

/// Where a resource stands.
#[derive(Debug, Clone)]
pub struct Origin {
    pub(super) source: Arc<Source>,
    /// Its number within the file, from 1.
    pub(super) number: usize,
    /// The document of YAML that it is in, from 0, and its path there: documents may be lists.
    pub(super) document: usize,
    pub(super) path: String,
}

impl Source {
    pub(super) fn new(name: &str, text: &str) -> Arc<Self> {
        Arc::new(Self {
            name: name.to_owned(),
            text: text.to_owned(),
            lines: OnceLock::new(),
        })
    }

    /// A text that can be read by itself may still not tell its lines.
    fn lines(&self, document: usize) -> Option<&Lines> {
        let lines = self
            .lines
            .get_or_init(|| Lines::read(&self.text).unwrap_or_default());
        lines.get(document)
    }
}

impl Origin {
    /// `file: document 2`
    pub fn place(&self) -> String {
        format!("{}: document {}", self.source.name, self.number)
    }

    /// `file:17: document 2`, with the line of a field.
    pub fn place_of(&self, field: &str) -> String {
        match self.line(field) {
            Some(line) => format!("{}:{line}: document {}", self.source.name, self.number),
            None => self.place(),
        }
    }

    /// The line of a field, from 1.
    pub fn line(&self, field: &str) -> Option<u64> {
        let separator = match (
            self.path.is_empty(),
            field.is_empty() || field.starts_with('['),
        ) {
            (false, false) => ".",
            _ => "",
        };
        let path = format!("{}{separator}{field}", self.path);
        self.source.lines(self.document)?.of(&path)
    }
}
