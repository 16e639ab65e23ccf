//! STATUS: tells whether an ADD could be served.

use crate::context::Context;
use crate::error::{Code, Result};
use crate::request::Command;
use crate::{agent, ipam};

/// Asks the datastore, and another plugin if that finds the addresses.
pub async fn status(context: &Context<'_>) -> Result<()> {
    let unavailable = |error: crate::error::Error| error.with_code(Code::NotAvailable);
    agent::check(context.config).map_err(unavailable)?;
    context.datastore.check_ready().await.map_err(unavailable)?;
    if !context.config.is_calico_ipam() {
        let asked = ipam::ask_delegate(context, Command::Status).await;
        asked.map_err(unavailable)?;
    }
    Ok(())
}
