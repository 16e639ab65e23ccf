//! Which texts are names and addresses of things outside the configuration.

use tortie_config::{Kind, Value};

#[track_caller]
fn refused<'a>(kind: Kind, texts: impl IntoIterator<Item = &'a str>) {
    for text in texts {
        assert!(kind.parse(text).is_err(), "{kind:?} accepts {text:?}");
    }
}

#[test]
fn endpoints_are_hosts_and_ports_only() {
    let endpoints = ["http://etcd:1234", "https://[::1]:2379/"].map(str::to_owned);
    assert_eq!(
        Kind::Endpoints.parse(",http://etcd:1234,, https://[::1]:2379/,"),
        Ok(Value::Texts(endpoints.to_vec()))
    );
    refused(
        Kind::Endpoints,
        [
            "etcd",
            "etcd:2379",
            "http://etcd/path",
            "http://user:password@etcd",
            "http://etcd?query",
            "http://etcd:port",
            "http://a b",
        ],
    );
}

#[test]
fn regions_are_labels_that_fit_into_the_name_of_a_namespace() {
    let longest = "a".repeat(46);
    assert!(Kind::Region.parse("region-1").is_ok() && Kind::Region.parse(&longest).is_ok());
    let too_long = "a".repeat(47);
    refused(
        Kind::Region,
        ["Region", "a/b", "a_b", "-a", "a-", "", &too_long],
    );
}

#[test]
fn dscp_is_a_number_or_a_name() {
    for (text, value) in [("0", 0), ("63", 63), ("ef", 46), ("AF21", 18)] {
        assert_eq!(Kind::Dscp.parse(text), Ok(Value::Int(value)), "{text}");
    }
    refused(Kind::Dscp, ["64", "-1", "AF99", ""]);
}
