//! Which API group the custom resources are in.

use tortie_api::crd::Group;
use tortie_error::Causes;
use tortie_store::kubernetes::{KubernetesConfig, KubernetesStore};

/// Asks the API server that a kubeconfig is for. Empty if it does not answer: the plugins then ask themselves, at each
/// call.
pub(super) async fn ask(kubeconfig: &str) -> String {
    let config = KubernetesConfig {
        kubeconfig_inline: Some(kubeconfig.to_owned()),
        ..KubernetesConfig::default()
    };
    match KubernetesStore::connect(&config).await {
        Ok(store) => match store.group() {
            Group::V1 => "crd.projectcalico.org/v1".to_owned(),
            Group::V3 => "projectcalico.org/v3".to_owned(),
        },
        Err(error) => {
            tracing::warn!(
                error = %Causes(&error),
                "The API server could not be asked which group Calico's resources are in; the plugins will ask at each call"
            );
            String::new()
        }
    }
}
