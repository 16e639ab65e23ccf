//! Namespaces and service accounts, which reach the data plane through the profiles that stand for them.

use crate::states::build::{pod, profile};
use crate::states::list::{bare_world, check};
use crate::states::rule::allow;

#[test]
fn namespaces_are_told_with_their_labels() {
    check([
        bare_world([profile("kns.red").label("pcns.team", "x").label("own", "1")])
            .gives("namespace red: own=1 team=x"),
        bare_world([
            profile("kns.red").label("pcns.team", "y"),
            profile("kns.blue"),
        ])
        .gives(
            "namespace red: team=y
             namespace blue",
        ),
        bare_world([profile("kns.blue").label("pcns.team", "z")]).gives("namespace blue: team=z"),
    ]);
}

#[test]
fn service_accounts_are_told_with_their_labels() {
    check([
        bare_world([profile("ksa.red.admin").label("pcsa.role", "root")])
            .gives("account red/admin: role=root"),
        bare_world([
            profile("ksa.red.admin"),
            profile("ksa.blue.admin.of.all").label("pcsa.role", "x"),
        ])
        .gives(
            "account red/admin
             account blue/admin.of.all: role=x",
        ),
        bare_world([profile("ksa.red.admin").inbound(allow())]).gives("account red/admin"),
    ]);
}

#[test]
fn profiles_of_other_names_stand_for_nothing() {
    check([
        bare_world([
            profile("red").label("pcns.team", "x"),
            profile("ksa.incomplete"),
            profile("xkns.red"),
        ])
        .gives(""),
        bare_world([profile("kns.a.b")]).gives("namespace a.b"),
    ]);
}

#[test]
fn a_namespace_that_is_referred_to_and_missing_is_not_told() {
    let a = || pod("red/a").profiles(&["kns.red", "ksa.red.default"]);
    check([
        bare_world([a()]).gives(
            "profile kns.red: in deny; out deny
             profile ksa.red.default: in deny; out deny
             pod red/a | profiles kns.red ksa.red.default",
        ),
        bare_world([
            a(),
            profile("kns.red").inbound(allow()).outbound(allow()),
            profile("ksa.red.default"),
        ])
        .gives(
            "profile kns.red: in allow; out allow
             profile ksa.red.default
             pod red/a | profiles kns.red ksa.red.default
             namespace red
             account red/default",
        ),
        bare_world([profile("kns.red").inbound(allow()).outbound(allow())]).gives("namespace red"),
    ]);
}
