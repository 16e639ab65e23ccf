//! Health and metrics over HTTP.

#[cfg(test)]
mod tests;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::AbortHandle;
use tortie_config::{ClientAuth, Config, MetricsConfig};
use tortie_error::Causes;
use tortie_serve::{Acceptor, Answers, Authorities, Certificate, Clients, listen};

use crate::agent::Agent;

/// How long to wait before a server that cannot start is tried again: another process may leave its port, and files with
/// certificates may come.
const RETRY: Duration = Duration::from_secs(5);

/// Why metrics cannot be served.
#[derive(Debug, thiserror::Error)]
enum Error {
    /// The address cannot be had.
    #[error("cannot listen")]
    Listen(#[from] io::Error),
    /// A certificate cannot be used.
    #[error(transparent)]
    Tls(#[from] tortie_serve::Error),
    /// A file is missing in the configuration.
    #[error("{parameter} is not set, which {because} asks for")]
    Missing {
        parameter: &'static str,
        because: &'static str,
    },
}

/// `/liveness`, `/readiness` and `/status`.
fn health(agent: &Agent) -> Answers {
    let [alive, ready] = [(); 2].map(|()| Arc::clone(agent.health()));
    let report = Arc::clone(agent.report());
    let well = |()| "ok\n".to_owned();
    let ill = |reason: String| reason + "\n";
    Answers::new()
        .check(&["/liveness"], move || {
            alive.liveness().map(well).map_err(ill)
        })
        .check(&["/readiness"], move || {
            ready.readiness().map(well).map_err(ill)
        })
        .document("/status", "application/json", move || {
            // A document of texts and numbers can always be written.
            serde_json::to_string_pretty(&report.status()).unwrap_or_default() + "\n"
        })
}

fn metrics(agent: &Agent) -> Answers {
    let metrics = Arc::clone(agent.metrics());
    Answers::new().metrics(move || metrics.text())
}

/// Servers that run until this is dropped.
#[derive(Debug, Default)]
pub(crate) struct Servers(Vec<AbortHandle>);

impl Servers {
    /// Starts those that the configuration asks for. One that cannot start is reported and tried again: the agent's work
    /// is more important.
    pub(crate) fn start(agent: &Agent, config: &Config) -> Self {
        let mut servers = Self::default();
        let runtime = &agent.options.runtime;
        if config.health.enabled {
            let (host, port) = (config.health.host.clone(), config.health.port);
            let task = runtime.spawn(run("health", host, port, health(agent), None));
            servers.0.push(task.abort_handle());
        }
        if config.metrics.enabled {
            let host = config.metrics.host.clone().unwrap_or_default();
            let settings = asks_for_tls(&config.metrics).then(|| config.metrics.clone());
            let task = runtime.spawn(run(
                "metrics",
                host,
                config.metrics.port,
                metrics(agent),
                settings,
            ));
            servers.0.push(task.abort_handle());
        }
        servers
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        for task in &self.0 {
            task.abort();
        }
    }
}

/// Whether figures are for those only who speak TLS.
fn asks_for_tls(config: &MetricsConfig) -> bool {
    let MetricsConfig {
        ca_file,
        cert_file,
        key_file,
        client_auth,
        ..
    } = config;
    let files = [ca_file, cert_file, key_file];
    files.iter().any(|file| file.is_some()) || *client_auth != ClientAuth::NoClientCert
}

/// Serves for ever, over TLS if there are settings for it.
async fn run(
    what: &'static str,
    host: String,
    port: u16,
    answers: Answers,
    tls: Option<MetricsConfig>,
) {
    let mut last_problem = String::new();
    loop {
        let Err(error) = serve(&host, port, answers.clone(), tls.as_ref()).await else {
            return;
        };
        let problem = Causes(&error).to_string();
        if problem != last_problem {
            tracing::error!(
                server = what,
                host,
                port,
                error = problem,
                "The server cannot listen"
            );
            last_problem = problem;
        }
        tokio::time::sleep(RETRY).await;
    }
}

async fn serve(
    host: &str,
    port: u16,
    answers: Answers,
    tls: Option<&MetricsConfig>,
) -> Result<(), Error> {
    let keys = tls.map(keys).transpose()?;
    let listener = listen(host, port).await?;
    match keys {
        None => answers.serve(listener).await,
        Some((certificate, acceptor)) => {
            answers.serve_tls(listener, acceptor, &certificate).await;
        }
    }
    Ok(())
}

/// What is shown to readers of metrics, and what they must show.
fn keys(config: &MetricsConfig) -> Result<(Arc<Certificate>, Acceptor), Error> {
    const CERTIFICATE: &str = "PrometheusMetricsCertFile";
    const KEY: &str = "PrometheusMetricsKeyFile";
    const AUTHORITIES: &str = "PrometheusMetricsCAFile";
    const CLIENTS: &str = "PrometheusMetricsClientAuth";
    let missing = |parameter, because| Error::Missing { parameter, because };
    let (chain, key) = match (&config.cert_file, &config.key_file) {
        (Some(chain), Some(key)) => (chain.clone(), key.clone()),
        (None, Some(_)) => return Err(missing(CERTIFICATE, KEY)),
        (Some(_), None) => return Err(missing(KEY, CERTIFICATE)),
        (None, None) if config.ca_file.is_some() => return Err(missing(CERTIFICATE, AUTHORITIES)),
        (None, None) => return Err(missing(CERTIFICATE, CLIENTS)),
    };
    let authorities = || match config.ca_file.as_deref() {
        Some(path) => load(path),
        None => Err(missing(AUTHORITIES, CLIENTS)),
    };
    let clients = match config.client_auth {
        ClientAuth::NoClientCert => Clients::Unknown,
        ClientAuth::RequireAnyClientCert => Clients::Anyone,
        ClientAuth::VerifyClientCertIfGiven => Clients::Optional(vec![authorities()?]),
        ClientAuth::RequireAndVerifyClientCert => Clients::Required(authorities()?),
    };
    let certificate = Arc::new(Certificate::load(chain, key)?);
    let acceptor = Acceptor::new(&certificate, clients)?;
    Ok((certificate, acceptor))
}

fn load(path: &Path) -> Result<Arc<Authorities>, Error> {
    Ok(Arc::new(Authorities::load(path)?))
}
