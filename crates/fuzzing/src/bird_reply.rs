//! What BIRD answers on its socket: no bytes make a reader panic, and an answer is the same however it arrives.

use tortie_bgp::bird::reply::{Decoder, Line};
use tortie_bgp::bird::{Problem, Reply, answer, status};

/// The codes of lines that readers look at.
const CODES: [u16; 10] = [13, 22, 1000, 1001, 1002, 1003, 1004, 1006, 1007, 1012];

/// Checks it with these bytes, and panics if it does not hold.
pub fn check(data: &[u8]) {
    let whole = Reply::parse(data);
    for cut in [data.len() / 3, data.len() / 2, data.len().saturating_sub(1)] {
        let mut decoder = Decoder::default();
        match decoder.push(&data[..cut]) {
            Ok(None) => match decoder.push(&data[cut..]) {
                Ok(Some(reply)) => assert_eq!(whole.as_ref(), Ok(&reply)),
                Ok(None) | Err(_) => assert!(whole.is_err()),
            },
            Ok(Some(reply)) => assert!(whole.is_err() || whole.as_ref() == Ok(&reply)),
            Err(_) => assert!(whole.is_err()),
        }
    }
    if let Ok(reply) = &whole {
        assert!(!reply.lines.is_empty());
        read(reply);
    }
    // The bytes as lines of each kind, whose codes chance would hardly find.
    let text = super::text(data);
    for code in CODES {
        let line = |text: &str| Line {
            code,
            text: text.to_owned(),
        };
        let lines = text.lines().map(line).collect();
        read(&Reply { lines });
    }
    assert!(Problem::parse(text).message.len() <= text.len());
}

fn read(reply: &Reply) {
    let _ = answer::status(reply);
    for interface in answer::interfaces(reply) {
        assert!(!interface.name.is_empty());
    }
    let protocols = answer::protocols(reply);
    for protocol in &protocols {
        assert!(!protocol.name.is_empty() && !protocol.name.contains(char::is_whitespace));
    }
    assert!(status::peers(&protocols).len() <= protocols.len());
    for route in answer::routes(reply) {
        for hop in route.next_hops {
            assert!(hop.gateway.is_some() || !hop.interface.is_empty());
        }
    }
}
