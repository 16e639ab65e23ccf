//! The datastore in the variables of Calico's node agent.

use tortie_variables as variables;

use super::Source;

/// The name that the node agent has for a variable of the datastore.
const NAMES: [(&str, &str); 5] = [
    (variables::DATASTORE_TYPE, variables::FELIX_DATASTORETYPE),
    (variables::ETCD_ENDPOINTS, variables::FELIX_ETCDENDPOINTS),
    (variables::ETCD_KEY_FILE, variables::FELIX_ETCDKEYFILE),
    (variables::ETCD_CERT_FILE, variables::FELIX_ETCDCERTFILE),
    (variables::ETCD_CA_CERT_FILE, variables::FELIX_ETCDCAFILE),
];

/// A variable of the datastore as the node agent reads it: its own name for it wins over everybody's.
pub fn felix_variable(environment: Source<'_>, name: &str) -> Option<String> {
    let given = |name: &str| environment(name).filter(|value| !value.is_empty());
    let (usual, felix) = NAMES
        .into_iter()
        .find(|(usual, _)| name.strip_prefix("CALICO_").unwrap_or(name) == *usual)
        .unzip();
    let own = felix.and_then(given).or_else(|| {
        let address = given(variables::FELIX_ETCDADDR)
            .filter(|_| usual == Some(variables::ETCD_ENDPOINTS))?;
        let scheme = given(variables::FELIX_ETCDSCHEME).unwrap_or_else(|| "http".to_owned());
        Some(format!("{scheme}://{address}"))
    });
    own.or_else(|| environment(name))
}

#[cfg(test)]
mod tests {
    use super::felix_variable;

    #[track_caller]
    fn check(variables: &[(&str, &str)], name: &str, expected: Option<&str>) {
        let environment = |asked: &str| {
            let found = variables.iter().find(|(name, _)| *name == asked);
            found.map(|(_, value)| (*value).to_owned())
        };
        assert_eq!(felix_variable(&environment, name).as_deref(), expected);
    }

    #[test]
    fn the_agents_own_names_win() {
        let both = [
            ("ETCD_ENDPOINTS", "http://a:1"),
            ("FELIX_ETCDENDPOINTS", "http://b:2"),
            ("KUBECONFIG", "/k"),
        ];
        check(&both, "ETCD_ENDPOINTS", Some("http://b:2"));
        check(&both, "CALICO_ETCD_ENDPOINTS", Some("http://b:2"));
        check(&both, "KUBECONFIG", Some("/k"));
        check(&both, "DATASTORE_TYPE", None);
        check(&both[..1], "ETCD_ENDPOINTS", Some("http://a:1"));
        let empty = [("FELIX_DATASTORETYPE", ""), ("DATASTORE_TYPE", "etcdv3")];
        check(&empty, "DATASTORE_TYPE", Some("etcdv3"));
    }

    #[test]
    fn an_address_and_a_scheme_are_an_endpoint() {
        let address = [("FELIX_ETCDADDR", "c:3"), ("FELIX_ETCDSCHEME", "https")];
        check(&address, "ETCD_ENDPOINTS", Some("https://c:3"));
        check(&address[..1], "ETCD_ENDPOINTS", Some("http://c:3"));
        check(&address, "DATASTORE_TYPE", None);
    }
}
