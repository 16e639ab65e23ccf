//! The one binary, `tortie`.

mod args;
mod commands;
mod completion;
mod config;
mod output;

use std::process::ExitCode;

use tortie_input as input;

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
