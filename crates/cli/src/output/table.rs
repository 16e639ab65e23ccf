//! Tables of aligned columns.

use std::io::{Result, Write};

/// Narrowest column.
const MIN_WIDTH: usize = 5;
/// Space between columns.
const PADDING: usize = 3;

/// A table of text.
#[derive(Debug)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these headings.
    pub(crate) fn new(headings: Vec<String>) -> Self {
        Self {
            rows: vec![headings],
        }
    }

    /// Adds a row.
    pub(crate) fn add(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Writes the table; the last column is not padded.
    pub(crate) fn write(&self, out: &mut impl Write) -> Result<()> {
        self.write_below(&mut Vec::new(), out)
    }

    /// Writes the table below others, whose columns had these widths: where there were some, without its headings. The
    /// widths become those of all.
    pub(crate) fn write_below(&self, widths: &mut Vec<usize>, out: &mut impl Write) -> Result<()> {
        let is_first = widths.is_empty();
        let columns = self.rows.first().map_or(0, Vec::len);
        widths.resize(columns, MIN_WIDTH);
        for (column, width) in widths.iter_mut().enumerate() {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            let widest = cells.map(|cell| cell.chars().count()).max().unwrap_or(0);
            *width = (*width).max(widest + PADDING);
        }
        for row in self.rows.iter().skip(usize::from(!is_first)) {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(widths.iter()) {
                line.push_str(cell);
                let padding = width.saturating_sub(cell.chars().count());
                line.extend(std::iter::repeat_n(' ', padding));
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }
}
