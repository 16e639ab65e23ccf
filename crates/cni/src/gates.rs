//! Readiness gates: URLs that must answer before a container is connected.

use std::time::Duration;

use crate::error::{Code, Error, Result};

const INTERVAL: Duration = Duration::from_secs(5);
const PATIENCE: Duration = Duration::from_secs(30);

/// Waits until each URL answers with success or a redirection.
pub(crate) async fn wait(urls: &[String]) -> Result<()> {
    for url in urls {
        let uri: http::Uri = url.parse().ok().filter(is_absolute).ok_or_else(|| {
            Error::config(format!(
                "network configuration: `readiness_gates` has `{url}`, which is not a URL such as http://localhost:9099/readiness"
            ))
        })?;
        let polled = tokio::time::timeout(PATIENCE, poll(&uri)).await;
        if polled.is_err() {
            let message = format!(
                "the readiness gate {url} did not answer within {} s",
                PATIENCE.as_secs()
            );
            return Err(Error::new(Code::TryLater, message));
        }
    }
    Ok(())
}

fn is_absolute(uri: &http::Uri) -> bool {
    uri.scheme().is_some() && uri.host().is_some()
}

async fn poll(uri: &http::Uri) {
    loop {
        match tokio::time::timeout(INTERVAL, ask(uri)).await {
            Ok(Ok(status)) if status.is_success() || status.is_redirection() => return,
            Ok(Ok(status)) => tracing::info!(%uri, %status, "A readiness gate is not ready"),
            Ok(Err(error)) => {
                let error = &*error;
                tracing::info!(%uri, error, "A readiness gate does not answer");
            }
            Err(_) => tracing::info!(%uri, "A readiness gate does not answer"),
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

async fn ask(uri: &http::Uri) -> Result<http::StatusCode, Box<dyn std::error::Error>> {
    let mut server = uri.clone().into_parts();
    server.path_and_query = Some(http::uri::PathAndQuery::from_static("/"));
    let mut config = kube::Config::new(http::Uri::from_parts(server)?);
    // Who is not ready is asked again in our own time.
    config.default_retry = false;
    let client = kube::Client::try_from(config)?;
    let request = http::Request::get(uri.path_and_query().map_or("/", |path| path.as_str()));
    let answer = client
        .send(request.body(kube::client::Body::empty())?)
        .await?;
    Ok(answer.status())
}
