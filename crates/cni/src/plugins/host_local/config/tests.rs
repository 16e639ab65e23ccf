use serde_json::json;

use super::*;
use crate::request::Request;

fn request(arguments: &str) -> Request {
    let arguments = arguments.to_owned();
    Request::from_environment(move |name| {
        Some(match name {
            "CNI_COMMAND" => "ADD".to_owned(),
            "CNI_ARGS" => arguments.clone(),
            _ => "x".to_owned(),
        })
    })
    .expect("a request")
}

fn read(ipam: &Value, arguments: &str) -> Result<Settings> {
    let config = json!({"cniVersion": "1.0.0", "name": "net", "ipam": ipam}).to_string();
    let request = request(arguments);
    Settings::read(&Call::read(&request, config.as_bytes())?)
}

#[test]
fn ranges_are_filled_in() {
    let settings = read(&json!({"subnet": "10.1.2.0/24", "ranges": [[{"subnet": "fd00::/64", "gateway": "fd00::9"}]]}), "IP=10.1.2.7").expect("settings");
    let shown: Vec<String> = settings
        .sets
        .iter()
        .map(|set| format!("{} {}", set[0], set[0].gateway))
        .collect();
    assert_eq!(
        shown,
        [
            "10.1.2.1-10.1.2.254 10.1.2.1",
            "fd00::1-fd00::ffff:ffff:ffff:ffff fd00::9"
        ]
    );
    assert_eq!(
        settings.wanted,
        ["10.1.2.7".parse::<IpAddr>().expect("an address")]
    );
    assert_eq!(settings.folder, PathBuf::from("/var/lib/cni/networks/net"));
}

#[track_caller]
fn check_refused(ipam: &Value, expected: &str) {
    let error = read(ipam, "").err().expect("a refusal");
    assert!(error.to_string().contains(expected), "{error}");
}

#[test]
fn what_cannot_be_right_is_refused() {
    check_refused(&json!({}), "no ranges");
    check_refused(&json!({"subnet": "10.1.2.3/24"}), "10.1.2.0/24");
    check_refused(&json!({"subnet": "10.1.2.0/31"}), "too small");
    check_refused(&json!({"subnet": "x"}), "`x`");
    check_refused(&json!({"ranges": [[]]}), "empty");
    check_refused(
        &json!({"subnet": "10.0.0.0/24", "rangeStart": "10.0.1.1"}),
        "rangeStart",
    );
    check_refused(
        &json!({"subnet": "10.0.0.0/24", "rangeStart": "10.0.0.9", "rangeEnd": "10.0.0.8"}),
        "ends before",
    );
    check_refused(
        &json!({"ranges": [[{"subnet": "10.0.0.0/24"}, {"subnet": "fd00::/64"}]]}),
        "both",
    );
    check_refused(
        &json!({"ranges": [[{"subnet": "10.0.0.0/24"}], [{"subnet": "10.0.0.0/16"}]]}),
        "overlap",
    );
    check_refused(
        &json!({"ranges": [[{"subnet": "10.0.0.0/24"}, {"subnet": "10.0.0.0/16"}]]}),
        "overlap",
    );
    check_refused(
        &json!({"subnet": "10.0.0.0/24", "routes": [{"dst": "y"}]}),
        "`y`",
    );
}
