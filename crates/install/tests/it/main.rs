//! Tests of values and templates.

mod chart;
mod values;
