//! The configuration file and the environment as sources.

use std::{collections::BTreeMap, ffi::OsString, os::unix::ffi::OsStringExt as _};

use tortie_config::{FileError, Sources, from_environment, from_file, resolve};

fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = |&(name, text): &(&str, &str)| (name.to_owned(), text.to_owned());
    pairs.iter().map(owned).collect()
}

#[track_caller]
fn check(text: &str, expected: &[(&str, &str)]) {
    assert_eq!(from_file(text), Ok(map(expected)), "{text}");
}

#[test]
fn sections_do_not_matter() {
    check("", &[]);
    check("FelixHostname=host", &[("FelixHostname", "host")]);
    check(
        "[default]\nFelixHostname=host",
        &[("FelixHostname", "host")],
    );
    check(
        "\u{feff}[global]\nFelixHostname = host\r\n\n[logging]\n  LogSeverityScreen\t=\tINFO  \n",
        &[("FelixHostname", "host"), ("LogSeverityScreen", "INFO")],
    );
    check("[a]\nx = 1\n[b]\nx = 2\n", &[("x", "2")]);
}

#[test]
fn comments_are_left_out() {
    check(
        "# a\n; b = c\n  # d = e\nx = 1 # f\ny = 2;g\n",
        &[("x", "1"), ("y", "2")],
    );
    check("x = # nothing\n", &[("x", "")]);
}

#[test]
fn only_the_first_delimiter_counts() {
    check(
        "FailsafeInboundHostPorts = tcp:22,udp:68\nFeatureGates: a=b",
        &[
            ("FailsafeInboundHostPorts", "tcp:22,udp:68"),
            ("FeatureGates", "a=b"),
        ],
    );
}

#[test]
fn quotes_keep_what_is_within() {
    check(
        "a = \"two words\"\nb = 'x y'\nc = `# ; \"`\nd = \"\"\"#1\"\"\"\ne = \"a\" and \"b\"\n`f` = 1\n",
        &[
            ("a", "two words"),
            ("b", "x y"),
            ("c", "# ; \""),
            ("d", "#1"),
            ("e", "\"a\" and \"b\""),
            ("f", "1"),
        ],
    );
}

#[test]
fn a_backslash_at_the_end_continues_a_line() {
    check(
        "a = 1,\\\n    2,\\\n    3\nb = 4\n",
        &[("a", "1,2,3"), ("b", "4")],
    );
    check("a = 1\\", &[("a", "1")]);
}

#[test]
fn a_file_that_cannot_be_read_says_where() {
    let line = |text| from_file(text).map_err(|FileError { line, .. }| line);
    assert_eq!(line("[global]\nx = 1\n[foobar\n"), Err(3));
    assert_eq!(line("x = \\\n\\\n1\nnonsense\n"), Err(4));
    assert_eq!(line("= 1"), Err(1));
    assert_eq!(line("a = 1\nb = `open\n"), Err(2));
    assert_eq!(
        from_file("nonsense").unwrap_err().to_string(),
        "line 1: expected `key = value`"
    );
}

#[test]
fn variables_are_those_with_the_prefix_in_any_case() {
    let variables = [
        ("FeLIX_LoGSEVERITYSCREEN", "INFO"),
        ("FELIX_FOO", "bar=baz"),
        ("FELIX_HEALTHHOST", ""),
        ("PATH", "/usr/bin"),
        ("NOT_FELIX_X", "1"),
    ]
    .map(|(name, value)| (OsString::from(name), OsString::from(value)));
    assert_eq!(
        from_environment(variables),
        map(&[
            ("logseverityscreen", "INFO"),
            ("foo", "bar=baz"),
            ("healthhost", "")
        ])
    );
}

#[test]
fn a_variable_that_is_not_unicode_is_refused_rather_than_overlooked() {
    let value = OsString::from_vec(vec![b'c', 0xff]);
    let environment = from_environment([("FELIX_INTERFACEPREFIX".into(), value)]);
    let resolved = resolve(&Sources {
        environment,
        ..Sources::default()
    });
    assert!(resolved.is_fatal());
}

#[test]
fn a_file_and_variables_meet_in_the_configuration() {
    let file = from_file("[global]\nInterfacePrefix = tap\nHealthPort = 1\n").unwrap();
    let environment = from_environment([("FELIX_HEALTHPORT".into(), "2".into())]);
    let resolved = resolve(&Sources {
        environment,
        file,
        ..Sources::default()
    });
    assert_eq!(resolved.config.interfaces.prefixes, ["tap"]);
    assert_eq!(resolved.config.health.port, 2);
}
