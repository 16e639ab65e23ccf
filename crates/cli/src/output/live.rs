//! Resources as they change, one after the other.

use std::fmt;
use std::io::Write;

use anyhow::Result;
use serde_json::json;
use tortie_api::columns::TableContext;
use tortie_api::{Kind, Resource};

use super::{Form, Shown, Table, to_yaml};

/// What happened to a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Happened {
    Added,
    Modified,
    Deleted,
}

/// Writes resources of a kind as they change.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) form: Form,
    pub(crate) kind: Kind,
    pub(crate) with_namespace: bool,
    /// Whether it is said what happened.
    pub(crate) with_event: bool,
    pub(crate) context: TableContext,
    /// Widths of the columns that were written.
    pub(crate) widths: Vec<usize>,
}

impl fmt::Display for Happened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        })
    }
}

impl Live {
    /// Writes what happened since the last time.
    pub(crate) fn write(
        &mut self,
        changes: &[(Happened, Resource)],
        out: &mut impl Write,
    ) -> Result<()> {
        match self.form {
            Form::Table { .. } | Form::Headings(_) | Form::Paths(_) => self.rows(changes, out)?,
            Form::Yaml | Form::Json if self.with_event => {
                for (happened, resource) in changes {
                    let event =
                        json!({"type": happened.to_string(), "object": resource.to_value()});
                    if matches!(self.form, Form::Json) {
                        writeln!(out, "{}", serde_json::to_string_pretty(&event)?)?;
                    } else {
                        write!(out, "---\n{}", to_yaml(&event)?)?;
                    }
                }
            }
            _ => {
                for (happened, resource) in changes {
                    if matches!(self.form, Form::Yaml) {
                        writeln!(out, "---")?;
                    }
                    if self.with_event {
                        write!(out, "{happened:8} ")?;
                    }
                    self.form.write(&self.shown(resource), out)?;
                }
            }
        }
        Ok(out.flush()?)
    }

    fn rows(&mut self, changes: &[(Happened, Resource)], out: &mut impl Write) -> Result<()> {
        let headings = self.form.headings(self.kind, self.with_namespace)?;
        let event = |text: &str| self.with_event.then(|| text.to_owned());
        let shown = event("EVENT").into_iter().chain(headings.iter().cloned());
        let mut table = Table::new(shown.collect());
        for (happened, resource) in changes {
            let cells = self.form.cells(resource, &headings, self.context);
            let cells = event(&happened.to_string()).into_iter().chain(cells);
            table.add(cells.collect());
        }
        Ok(table.write_below(&mut self.widths, out)?)
    }

    fn shown(&self, resource: &Resource) -> Shown {
        Shown {
            kind: Some(self.kind),
            resources: vec![resource.clone()],
            list_revision: None,
            with_namespace: self.with_namespace,
            context: TableContext::default(),
        }
    }
}
