//! What rules do.

use tortie_kernel::nft::{
    ChainKind, Expr, Family, Hook, IcmpUnreachable, Limit, LimitKind, Log, Nat, NatFlags, NatKind,
    Register, Registers, Reject, Value, Verdict,
};

use super::{FIRST, Ground, check, check_on, forward, ground, tcp};

#[test]
fn verdicts() {
    for (verdict, text) in [
        (Verdict::Accept, "accept"),
        (Verdict::Drop, "drop"),
        (Verdict::Return, "return"),
        (Verdict::Continue, "continue"),
        (Verdict::Jump("other".into()), "jump other"),
        (Verdict::Goto("other".into()), "goto other"),
    ] {
        check([Expr::Verdict(verdict)], text);
    }
}

#[test]
fn counters() {
    check(
        [Expr::Counter, Expr::Verdict(Verdict::Accept)],
        "counter packets 0 bytes 0 accept",
    );
}

#[test]
fn limits() {
    let limit = |rate, seconds, burst, kind, over| {
        Expr::Limit(Limit {
            rate,
            seconds,
            burst,
            kind,
            over,
        })
    };
    check(
        [limit(10, 1, 5, LimitKind::Packets, false)],
        "limit rate 10/second",
    );
    check(
        [limit(10, 60, 7, LimitKind::Packets, true)],
        "limit rate over 10/minute burst 7 packets",
    );
    check(
        [limit(1024, 1, 4096, LimitKind::Bytes, true)],
        "limit rate over 1 kbytes/second burst 4 kbytes",
    );
}

#[test]
fn logs() {
    let kernel = |prefix: &str, level| {
        Expr::Log(Log::Kernel {
            prefix: prefix.into(),
            level,
        })
    };
    check(
        [kernel("calico: ", 6)],
        "log prefix \"calico: \" level info",
    );
    check([kernel("", 4)], "log");
    let group = |prefix: &str, length, threshold| {
        Expr::Log(Log::Group {
            group: 3,
            prefix: prefix.into(),
            length,
            threshold,
        })
    };
    check(
        [group("API0|p", Some(80), 5)],
        "log prefix \"API0|p\" group 3 snaplen 80 queue-threshold 5",
    );
    check([group("", None, 0)], "log group 3");
    check(
        [group(&"é".repeat(70), None, 0)],
        &format!("log prefix \"{}\" group 3", "é".repeat(63)),
    );
}

#[test]
fn rejections() {
    let ip = forward(Family::Ip);
    check_on(&ip, [Expr::Reject(Reject::Icmp(3))], "reject");
    check_on(
        &ip,
        [Expr::Reject(Reject::Icmp(13))],
        "reject with icmp admin-prohibited",
    );
    check_on(
        &forward(Family::Ip6),
        [Expr::Reject(Reject::Icmp(1))],
        "reject with icmpv6 admin-prohibited",
    );
    let [protocol, is_tcp] = tcp();
    check_on(
        &ip,
        [protocol, is_tcp, Expr::Reject(Reject::TcpReset)],
        "reject with tcp reset",
    );
    let inet = forward(Family::Inet);
    for (code, text) in [
        (IcmpUnreachable::NoRoute, "reject with icmpx no-route"),
        (IcmpUnreachable::Port, "reject"),
        (IcmpUnreachable::Host, "reject with icmpx host-unreachable"),
        (
            IcmpUnreachable::Prohibited,
            "reject with icmpx admin-prohibited",
        ),
    ] {
        check_on(&inet, [Expr::Reject(Reject::Inet(code))], text);
    }
}

#[test]
fn packets_are_left_untracked() {
    check_on(
        &ground(Family::Ip, ChainKind::Filter, Hook::Prerouting, -300),
        [Expr::NoTrack],
        "notrack",
    );
}

fn postrouting() -> Ground {
    ground(Family::Ip, ChainKind::Nat, Hook::Postrouting, 100)
}

fn put(to: Register, value: Value) -> Expr {
    Expr::Immediate { to, value }
}

#[test]
fn addresses_and_ports_are_changed() {
    let nat = |kind, ports, flags| {
        Expr::Nat(Nat {
            kind,
            family: Family::Ip,
            addresses: Some(Registers::one(FIRST)),
            ports,
            flags,
        })
    };
    let address = put(FIRST, Value::address("10.0.0.1".parse().unwrap()));
    check_on(
        &postrouting(),
        [
            address.clone(),
            nat(NatKind::Source, None, NatFlags::FULLY_RANDOM),
        ],
        "snat to 10.0.0.1 fully-random",
    );
    check_on(
        &postrouting(),
        [
            address.clone(),
            nat(
                NatKind::Source,
                None,
                NatFlags::RANDOM | NatFlags::PERSISTENT,
            ),
        ],
        "snat to 10.0.0.1 random,persistent",
    );
    let [protocol, is_tcp] = tcp();
    let port = Some(Registers::one(Register::at(4)));
    check_on(
        &ground(Family::Ip, ChainKind::Nat, Hook::Prerouting, -100),
        [
            protocol,
            is_tcp,
            address,
            put(Register::at(4), Value::network16(8080)),
            nat(NatKind::Destination, port, NatFlags::NONE),
        ],
        "meta l4proto tcp dnat to 10.0.0.1:8080",
    );
}

#[test]
fn masquerading() {
    let masquerade = |flags, ports| Expr::Masquerade { flags, ports };
    check_on(
        &postrouting(),
        [masquerade(NatFlags::NONE, None)],
        "masquerade",
    );
    check_on(
        &postrouting(),
        [masquerade(NatFlags::FULLY_RANDOM, None)],
        "masquerade fully-random",
    );
    let [protocol, is_tcp] = tcp();
    let ports = Registers {
        first: FIRST,
        last: Register::at(4),
    };
    check_on(
        &postrouting(),
        [
            protocol,
            is_tcp,
            put(FIRST, Value::network16(1024)),
            put(Register::at(4), Value::network16(2048)),
            masquerade(NatFlags::FULLY_RANDOM, Some(ports)),
        ],
        "meta l4proto tcp masquerade to :1024-2048 fully-random",
    );
}
