//! Where names are looked up, as `/etc/resolv.conf` says it.

use std::fs;
use std::path::Path;

use serde_json::{Map, Value, json};

use crate::error::{Code, Error, Result};

/// Reads such a file into the form of results.
pub(super) fn read(path: &Path) -> Result<Value> {
    let text = fs::read_to_string(path);
    let text = text.map_err(Error::of(
        Code::Io,
        format!(
            "network configuration: `ipam.resolvConf`: {} cannot be read",
            path.display()
        ),
    ))?;
    Ok(parse(&text))
}

fn parse(text: &str) -> Value {
    let (mut servers, mut search, mut options) = (Vec::new(), Vec::new(), Vec::new());
    let mut domain = "";
    for line in text.lines().map(str::trim) {
        let mut words = line.split_whitespace();
        // Comments begin with words that are none of these.
        match (words.next(), words.next()) {
            (Some("nameserver"), Some(server)) => servers.push(server),
            (Some("domain"), Some(name)) => domain = name,
            (Some("search"), Some(first)) => search.extend([first].into_iter().chain(words)),
            (Some("options"), Some(first)) => options.extend([first].into_iter().chain(words)),
            _ => {}
        }
    }
    let mut found = Map::new();
    for (key, list) in [
        ("nameservers", servers),
        ("search", search),
        ("options", options),
    ] {
        if !list.is_empty() {
            found.insert(key.to_owned(), json!(list));
        }
    }
    if !domain.is_empty() {
        found.insert("domain".to_owned(), domain.into());
    }
    found.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_is_taken_over() {
        let text = "# nameserver 1.1.1.1\n; x\nnameserver 192.0.2.53\n nameserver 2001:db8::53\ndomain a.example\nsearch b c\noptions ndots:5 edns0\nnameserver\n";
        let expected = json!({
            "nameservers": ["192.0.2.53", "2001:db8::53"], "domain": "a.example", "search": ["b", "c"],
            "options": ["ndots:5", "edns0"],
        });
        assert_eq!(parse(text), expected);
        assert_eq!(parse(""), json!({}));
    }
}
