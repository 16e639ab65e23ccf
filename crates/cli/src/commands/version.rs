//! `tortie version`

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Result;
use tortie_api::{Kind, Resource};
use tortie_store::Key;

use crate::args::{Global, Version};
use crate::config;

pub(super) async fn run(args: &Version, global: &Global) -> Result<ExitCode> {
    let mut stdout = anstream::stdout();
    writeln!(stdout, "Client Version:    v{}", env!("CARGO_PKG_VERSION"))?;
    if args.client {
        return Ok(ExitCode::SUCCESS);
    }
    let client = config::connect(global).await?;
    let key = Key::global(Kind::ClusterInformation, "default");
    let (version, kind) = match client.get(&key).await {
        Ok(Resource::ClusterInformation(information)) => (
            information.spec.calico_version,
            information.spec.cluster_type,
        ),
        Ok(_) | Err(tortie_store::Error::NotFound(_)) => (String::new(), String::new()),
        Err(error) => return Err(error.into()),
    };
    let or_unknown = |text: String| {
        if text.is_empty() {
            "unknown".to_owned()
        } else {
            text
        }
    };
    writeln!(stdout, "Cluster Version:   {}", or_unknown(version))?;
    writeln!(stdout, "Cluster Type:      {}", or_unknown(kind))?;
    Ok(ExitCode::SUCCESS)
}
