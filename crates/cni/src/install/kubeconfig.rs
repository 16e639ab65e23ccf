//! A kubeconfig for the plugins, from the account of the pod that installs them.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1;
use kube::Api;
use kube::api::PostParams;
use tortie_error::Causes;

use crate::error::{Code, Error, Result};

/// How long a token is good for.
const TOKEN_SECONDS: i64 = 24 * 60 * 60;

/// The account of a pod.
#[derive(Debug, Clone)]
pub struct ServiceAccount {
    /// The folder with its token, namespace and the cluster's authority.
    pub folder: PathBuf,
    /// The name of the account that the plugins are to have.
    pub plugins_account: String,
    /// `https`, unless somebody has reasons.
    pub protocol: String,
    /// Where the API server is.
    pub host: String,
    pub port: String,
    /// Whether its certificate is not to be checked.
    pub skip_tls_verify: bool,
}

impl ServiceAccount {
    /// Where a pod finds its account.
    pub const FOLDER: &'static str = "/var/run/secrets/kubernetes.io/serviceaccount";

    /// Whether this process runs in a pod that has an account.
    pub fn is_there(&self) -> bool {
        self.folder.join("token").is_file()
    }

    /// The pod's own token.
    pub fn token(&self) -> Result<String> {
        Ok(self.read("token")?.trim().to_owned())
    }

    /// A kubeconfig with a token for the plugins; with the pod's own where none can be had.
    pub(super) async fn kubeconfig(&self) -> Result<String> {
        let own = self.token()?;
        let token = match self.request_token(&own).await {
            Ok((token, _)) => token,
            Err(error) => {
                let account = &self.plugins_account;
                tracing::warn!(
                    account,
                    error = %Causes(&error),
                    "No token could be had for the plugins; they get the pod's own"
                );
                own
            }
        };
        Ok(self.text(&token, &self.authority()?))
    }

    /// A kubeconfig with a new token for the plugins, and how long that is good for.
    pub(super) async fn renewed(&self) -> Result<(String, Duration)> {
        let (token, lifetime) = self.request_token(&self.token()?).await?;
        Ok((self.text(&token, &self.authority()?), lifetime))
    }

    fn server(&self) -> String {
        let protocol = match self.protocol.as_str() {
            "" => "https",
            protocol => protocol,
        };
        let host = &self.host;
        if host.contains(':') {
            format!("{protocol}://[{host}]:{}", self.port)
        } else {
            format!("{protocol}://{host}:{}", self.port)
        }
    }

    fn authority(&self) -> Result<String> {
        if self.skip_tls_verify {
            return Ok("insecure-skip-tls-verify: true".to_owned());
        }
        let encoded = STANDARD.encode(self.read("ca.crt")?);
        Ok(format!("certificate-authority-data: {encoded}"))
    }

    fn text(&self, token: &str, authority: &str) -> String {
        let server = self.server();
        format!(
            "# Kubeconfig file for Calico CNI plugin.\n\
             apiVersion: v1\n\
             kind: Config\n\
             clusters:\n\
             - name: local\n\
             \x20 cluster:\n\
             \x20   server: {server}\n\
             \x20   {authority}\n\
             users:\n\
             - name: calico\n\
             \x20 user:\n\
             \x20   token: {token}\n\
             contexts:\n\
             - name: calico-context\n\
             \x20 context:\n\
             \x20   cluster: local\n\
             \x20   user: calico\n\
             current-context: calico-context\n"
        )
    }

    /// A token, and how long it is good for: the API server may give less than was asked for.
    async fn request_token(&self, own: &str) -> Result<(String, Duration)> {
        let kubeconfig = kube::config::Kubeconfig::from_yaml(&self.text(own, &self.authority()?));
        let kubeconfig = kubeconfig.map_err(failed)?;
        let options = kube::config::KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await;
        let client = kube::Client::try_from(config.map_err(failed)?).map_err(failed)?;
        let accounts: Api<v1::ServiceAccount> =
            Api::namespaced(client, self.read("namespace")?.trim());
        let request = TokenRequest {
            spec: Some(TokenRequestSpec {
                expiration_seconds: Some(TOKEN_SECONDS),
                ..TokenRequestSpec::default()
            }),
            ..TokenRequest::default()
        };
        let name = &self.plugins_account;
        let answer = accounts
            .create_token_request(name, &PostParams::default(), &request)
            .await
            .map_err(failed)?;
        let seconds = answer.spec.and_then(|spec| spec.expiration_seconds);
        let seconds = u64::try_from(seconds.unwrap_or(TOKEN_SECONDS)).unwrap_or_default();
        answer
            .status
            .and_then(|status| status.token)
            .map(|token| (token, Duration::from_secs(seconds)))
            .ok_or_else(|| Error::new(Code::Datastore, "the API server gave no token"))
    }

    fn read(&self, name: &str) -> Result<String> {
        let file = self.folder.join(name);
        let failed = format!("{} cannot be read", file.display());
        fs::read_to_string(&file).map_err(Error::of(Code::Io, failed))
    }
}

fn failed<E: std::error::Error + Send + Sync + 'static>(error: E) -> Error {
    Error::of(Code::Datastore, "the API server gave no token")(error)
}
