//! `tortie pod list`

use std::process::ExitCode;

use anyhow::Result;
use k8s_openapi::api::core::v1::Pod;

use super::record::Record;
use super::site::Site;
use crate::output::Table;

pub(super) async fn run(site: &Site) -> Result<ExitCode> {
    let headings = [
        "NAMESPACE",
        "NAME",
        "ADDRESS",
        "LABELS",
        "SERVES",
        "PROCESS",
    ];
    let mut table = Table::new(headings.map(str::to_owned).into());
    for record in Record::all(site.folder())? {
        let pods = site.objects().pods(&record.namespace);
        let pod = pods.get_opt(&record.name).await?.unwrap_or_default();
        let process = if record.is_live() {
            record.process.to_string()
        } else {
            "ended".to_owned()
        };
        let serves = record.serves.join(",");
        table.add(vec![
            record.namespace,
            record.name,
            address(&pod),
            labels(&pod),
            serves,
            process,
        ]);
    }
    table.write(&mut anstream::stdout())?;
    Ok(ExitCode::SUCCESS)
}

fn address(pod: &Pod) -> String {
    let address = pod.status.as_ref().and_then(|status| status.pod_ip.clone());
    address.unwrap_or_default()
}

fn labels(pod: &Pod) -> String {
    let labels = pod.metadata.labels.iter().flatten();
    let labels: Vec<String> = labels
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    labels.join(",")
}
