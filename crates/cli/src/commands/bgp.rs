//! `tortie bgp`: keeps BIRD doing what the datastore says, and says what that is.

mod doctor;
pub(super) mod load;
mod render;
mod run;
mod status;
mod why;

use std::process::ExitCode;

use anyhow::Result;

use super::root;
use crate::args::{Bgp, BgpCommand, Global};

pub(super) use run::{MISSING_BIRD, find_bird};
pub(super) use status::node_status;

pub(super) async fn run(args: &Bgp, global: &Global) -> Result<ExitCode> {
    match &args.command {
        None => {
            root::check_bgp()?;
            run::run(&args.run, global).await
        }
        Some(BgpCommand::Render(args)) => render::run(args, global).await,
        Some(BgpCommand::Status(args)) => status::run(args).await,
        Some(BgpCommand::Why(args)) => why::run(args, global).await,
        Some(BgpCommand::Doctor(args)) => doctor::run(args, global).await,
    }
}
