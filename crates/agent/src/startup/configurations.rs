//! Configurations that a cluster begins with, and that of one node.

use tortie_api::bgp_configuration::BgpConfigurationSpec;
use tortie_api::felix_configuration::FelixConfigurationSpec;
use tortie_api::ipam_configuration::IpamConfigurationSpec;
use tortie_api::scalar::GoDuration;
use tortie_api::{BgpConfiguration, FelixConfiguration, IpamConfiguration, Resource};
use tortie_client::Client;
use tortie_store::{self as store, Key};

use crate::startup::register::Error;

/// Makes those that are missing.
pub(crate) async fn make_configurations(
    client: &Client,
    node: &str,
    is_kubernetes: bool,
) -> Result<(), Error> {
    let everywhere = FelixConfigurationSpec {
        reporting_interval: Some(GoDuration::from_secs(0)),
        log_severity_screen: "Info".to_owned(),
        ..FelixConfigurationSpec::default()
    };
    let mut all: Vec<Resource> = vec![FelixConfiguration::new("", "default", everywhere).into()];
    if !is_kubernetes {
        make_own_configuration(client, node).await?;
        all.push(BgpConfiguration::new("", "default", BgpConfigurationSpec::default()).into());
        let addresses = IpamConfigurationSpec {
            auto_allocate_blocks: true,
            ..IpamConfigurationSpec::default()
        };
        all.push(IpamConfiguration::new("", "default", addresses).into());
    }
    for configuration in all {
        match client.create(configuration).await {
            Ok(_) | Err(store::Error::AlreadyExists(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Makes the configuration of this node alone, with nothing but what it needs: every field of it overrides what is set
/// for all nodes.
pub(crate) async fn make_own_configuration(client: &Client, node: &str) -> Result<(), Error> {
    let here = FelixConfigurationSpec {
        default_endpoint_to_host_action: "Return".to_owned(),
        ..FelixConfigurationSpec::default()
    };
    let own = FelixConfiguration::new("", &format!("node.{node}"), here);
    match client.create_without_defaults(own.clone().into()).await {
        Ok(_) => return Ok(()),
        Err(store::Error::AlreadyExists(_)) => {}
        Err(error) => return Err(error.into()),
    }
    // Earlier versions wrote the defaults of other fields, too. Whether somebody relies on them by now cannot be told.
    let mut full = Resource::from(own.clone());
    full.set_defaults();
    let Resource::FelixConfiguration(full) = full else {
        return Ok(());
    };
    let found = client.get(&Key::of(&own.clone().into())).await?;
    if let Resource::FelixConfiguration(found) = found
        && found.spec == full.spec
        && found.spec != own.spec
    {
        let name = &own.metadata.name;
        tracing::warn!(
            name,
            "A FelixConfiguration holds defaults that an earlier version wrote, which override what is set for all nodes; \
             `tortie delete felixconfiguration` before the next start removes them"
        );
    }
    Ok(())
}
