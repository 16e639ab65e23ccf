//! The one binary, `tortie`.

mod args;
mod commands;
mod completion;
mod config;
mod input;
mod output;

use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(code) = commands::cni::by_program_name() {
        return code;
    }
    completion::answer();
    match args::parse() {
        Ok(args) => commands::run(args),
        Err(code) => code,
    }
}
