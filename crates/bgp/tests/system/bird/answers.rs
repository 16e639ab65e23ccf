use std::time::Duration;

use tortie_api::kinds::calico_node_status::BgpDaemonState;
use tortie_bgp::bird::answer::{AsSegment, Kind, Outcome, State};
use tortie_bgp::bird::status::{self, Peer, Sockets};
use tortie_bgp::bird::{Configure, Destination, Error, Limits, Routes, Side, Switch};

use super::site::{Pair, Site, await_that, block_on};

#[test]
fn neighbours_tell_of_sessions_and_routes() {
    block_on(async {
        let pair = Pair::connected().await;
        let (a, b) = (&pair.a, &pair.b);
        await_that("routes are exchanged", async || {
            b.has_route_to(a.block()).await
        })
        .await;

        let [v4, v6] = Site::sessions(b);
        let session = a.socket().protocol(&v4).await.unwrap().unwrap();
        let told = session.session.unwrap();
        assert_eq!((told.neighbor, told.neighbor_as), (Some(b.v4), Some(64512)));
        assert!(told.established.hold.is_some());
        assert_eq!(session.channels[0].counters.exported, 1);
        assert_eq!(a.socket().protocol("nobody").await.unwrap(), None);

        let route = b.routes_to(a.block()).await.remove(0);
        assert_eq!((route.kind, route.is_primary), (Kind::Unicast, true));
        assert_eq!(route.next_hops[0].gateway, Some(a.v4));
        assert_eq!(route.next_hops[0].interface, "eth0");
        assert_eq!(route.attributes.next_hop, Some(a.v4));
        assert_eq!(route.attributes.local_pref, Some(100));
        assert_eq!(route.attributes.as_path, Vec::<AsSegment>::new());

        let prefixes = async |routes: Routes| {
            let found = a.socket().routes(&routes).await.unwrap();
            found.iter().map(|route| route.prefix).collect::<Vec<_>>()
        };
        let to_b = Routes {
            side: Side::To(v4.clone()),
            ..Routes::default()
        };
        assert_eq!(prefixes(to_b).await, [a.block()]);
        let from_b = Routes {
            side: Side::From(v4.clone()),
            table: Some("master4".to_owned()),
            primary: true,
            ..Routes::default()
        };
        assert_eq!(prefixes(from_b).await, [b.block()]);
        let longest = Routes {
            destination: Destination::Address("10.65.2.9".parse().unwrap()),
            ..Routes::default()
        };
        assert_eq!(prefixes(longest).await, [b.block()]);
        let unknown = Routes {
            destination: Destination::Address("192.0.2.1".parse().unwrap()),
            ..Routes::default()
        };
        assert_eq!(prefixes(unknown).await, []);

        let interfaces = a.socket().interfaces().await.unwrap();
        let eth0 = interfaces.iter().find(|one| one.name == "eth0").unwrap();
        assert!(eth0.is_up && eth0.addresses.iter().any(|net| net.addr() == a.v6));

        a.socket().switch(Switch::Disable, &v6).await.unwrap();
        await_that("a disabled session is down", async || {
            let found = a.socket().protocol(&v6).await.unwrap().unwrap();
            found.state == State::Down
        })
        .await;
        a.socket().switch(Switch::Enable, &v6).await.unwrap();
        a.socket().switch(Switch::Restart, &v4).await.unwrap();
        pair.await_sessions().await;
    });
}

#[test]
fn status_is_told_for_both_ip_versions() {
    block_on(async {
        let pair = Pair::connected().await;
        let answers = Sockets::in_folder(pair.a.folder()).ask(true).await;
        for (peer, address) in [(&answers.v4, pair.b.v4), (&answers.v6, pair.b.v6)] {
            let rows: Vec<_> = peer.as_ref().unwrap().peers.iter().map(Peer::row).collect();
            assert_eq!(rows.len(), 1);
            let [shown, r#type, state, _, info] = &rows[0];
            let expected = (
                &*address.to_string(),
                "node-to-node mesh",
                "up",
                "Established",
            );
            assert_eq!((&**shown, &**r#type, &**state, &**info), expected);
        }
        let bgp = status::bgp(&answers);
        assert_eq!(
            (bgp.number_established_v4, bgp.number_established_v6),
            (1, 1)
        );
        let agent = status::agent(&answers);
        assert_eq!(agent.bird_v4.router_id, pair.a.v4.to_string());
        assert_eq!(agent.bird_v6.state, Some(BgpDaemonState::Ready));
        let routes = status::routes(&answers);
        let block = pair.a.block().to_string();
        let own = routes.routes_v4.iter().find(|one| one.destination == block);
        assert_eq!(own.unwrap().interface, "blackhole");
        assert!(!routes.routes_v6.is_empty());
    });
}

#[test]
fn refusals_say_which_command_got_which_answer() {
    block_on(async {
        let pair = Pair::connected().await;
        let socket = pair.a.socket();
        let refused = socket.ask("show nothing").await.unwrap_err();
        let message = refused.to_string();
        assert!(
            message.starts_with("BIRD refused `show nothing`: 9001 syntax error"),
            "{message}"
        );
        // The connection can still be used.
        let mut connection = socket.connect().await.unwrap();
        assert!(connection.version().starts_with("2."));
        connection.ask("nonsense").await.unwrap_err();
        connection.status().await.unwrap();

        let injected = socket.ask("show status\ndown").await;
        assert!(matches!(injected, Err(Error::Unspeakable { .. })));
        let narrow = Limits {
            bytes: 100,
            ..Limits::default()
        };
        let long = socket.with_limits(narrow).protocols_all().await;
        assert!(matches!(long, Err(Error::TooLong { limit: 100, .. })));

        let nothing = socket.confirm().await.unwrap();
        assert_eq!(nothing.outcome, Outcome::Nothing);
        let later = Configure {
            undo_after: Some(Duration::from_mins(1)),
            ..Configure::default()
        };
        let taken = socket.configure(&later).await.unwrap();
        assert_eq!(taken.undo_after, Some(Duration::from_mins(1)));
        assert_eq!(socket.confirm().await.unwrap().outcome, Outcome::Confirmed);
        assert_eq!(socket.configure_check(None).await.unwrap(), pair.a.config());
    });
}

#[test]
fn who_does_not_answer_is_not_waited_for_for_ever() {
    block_on(async {
        let pair = Pair::connected().await;
        let bird = pair.a.birds()[0];
        super::site::kill(bird, rustix::process::Signal::STOP);
        let limits = Limits {
            time: Duration::from_millis(200),
            ..Limits::default()
        };
        let silent = pair.a.socket().with_limits(limits).status().await;
        assert!(matches!(silent, Err(Error::Silent { .. })), "{silent:?}");
        super::site::kill(bird, rustix::process::Signal::CONT);
        pair.a.socket().status().await.unwrap();
        let absent = Sockets::in_folder(&pair.a.folder().join("nowhere"))
            .ask(false)
            .await;
        assert!(matches!(absent.v4, Err(Error::Unreachable { .. })));
        let agent = status::agent(&absent);
        assert_eq!(agent.bird_v4.state, Some(BgpDaemonState::NotReady));
    });
}
