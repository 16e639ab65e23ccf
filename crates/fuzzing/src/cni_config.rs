//! The network configuration, those of each plugin, results of other plugins and arguments: no bytes make a plugin panic, and
//! what is read is written in every version's form and read back the same.

use tortie_cni::{Arguments, CniResult, CniVersion, NetworkConfig, Plugin, Request};

/// Checks it with these bytes, and panics if it does not hold.
pub fn check(data: &[u8]) {
    match NetworkConfig::parse(data) {
        Ok(config) => {
            assert!(config.version().is_ok());
            let _ = config.previous_result();
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    let request = Request::from_environment(|name| {
        Some(match name {
            "CNI_COMMAND" => "ADD".to_owned(),
            "CNI_ARGS" => String::new(),
            _ => "eth0".to_owned(),
        })
    });
    if let Ok(request) = request {
        for plugin in Plugin::ALL {
            if let Err(error) = plugin.check_config(&request, data) {
                assert!(!error.to_string().is_empty());
            }
        }
    }
    if let Ok(value) = serde_json::from_slice(data)
        && let Ok(result) = CniResult::parse(&value)
    {
        for version in CniVersion::ALL {
            let read =
                CniResult::parse(&result.to_json(version)).expect("what was written is read");
            if version >= CniVersion::V1_0_0 {
                assert_eq!(read.ips, result.ips);
                let ways = |result: &CniResult| {
                    let routes = result.routes.iter();
                    routes
                        .map(|route| (route.destination, route.gateway))
                        .collect::<Vec<_>>()
                };
                assert_eq!(ways(&read), ways(&result));
            }
            if version >= CniVersion::V1_1_0 {
                assert_eq!(read.routes, result.routes);
            }
        }
    }
    if let Ok(text) = std::str::from_utf8(data) {
        let _ = Arguments::parse(text);
        let _ = Request::from_environment(|name| match name {
            "CNI_COMMAND" => Some("ADD".to_owned()),
            _ => Some(text.to_owned()),
        });
    }
}
