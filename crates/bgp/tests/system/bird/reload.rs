use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use tortie_bgp::bird::answer::Protocol;
use tortie_bgp::bird::config_file::{Parser, Texts};
use tortie_bgp::bird::reload::{Reload, Reloaded};
use tortie_bgp::bird::{ConfigFile, Error};

use super::site::{BIRD, CONF, Pair, Site, await_that, block_on};

/// Sessions of these nodes come back within 2 s.
const RELOAD: Reload = Reload {
    patience: Duration::from_secs(20),
    reserve: Duration::from_secs(10),
    interval: Duration::from_millis(50),
    soft: false,
};

fn by_program(site: &Site) -> ConfigFile {
    ConfigFile::new(&site.config(), Parser::Program(BIRD.into())).unwrap()
}

fn by_socket(site: &Site) -> ConfigFile {
    ConfigFile::new(&site.config(), Parser::Running(site.socket())).unwrap()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn what_birds_parser_refuses_changes_nothing() {
    block_on(async {
        let pair = Pair::connected().await;
        let before = fs::read_to_string(pair.a.config()).unwrap();
        let texts = pair.texts_of_a(|conf| {
            conf.blocks.clear();
            conf.more = "# next\nfilter broken { accept }\n".to_owned();
        });
        let line = texts[CONF].lines().position(|line| line.contains("broken"));
        let line = u32::try_from(line.unwrap()).unwrap() + 1;
        for config in [by_program(&pair.a), by_socket(&pair.a)] {
            let refused = RELOAD.run(&config, &pair.a.socket(), texts.clone()).await;
            let Err(Error::Config(problem)) = refused else {
                panic!("{refused:?}");
            };
            let place = problem.place.unwrap();
            assert_eq!((place.line, place.column), (line, Some(24)));
            assert!(
                problem.message.starts_with("syntax error"),
                "{}",
                problem.message
            );
            // What was refused can be looked at.
            assert!(fs::read_to_string(place.file).unwrap().contains("broken"));
        }
        assert_eq!(fs::read_to_string(pair.a.config()).unwrap(), before);
        assert!(pair.b.has_route_to(pair.a.block()).await);
    });
}

#[test]
fn a_change_is_in_force_and_in_place() {
    block_on(async {
        let pair = Pair::connected().await;
        let (config, socket) = (by_program(&pair.a), pair.a.socket());
        let since = pair.a.protocols().await;
        let new = "10.65.77.0/26".parse().unwrap();
        let texts = pair.texts_of_a(|conf| conf.blocks.push(new));
        let done = RELOAD.run(&config, &socket, texts.clone()).await.unwrap();
        assert_eq!(done, Reloaded::Confirmed { missing: vec![] });
        await_that("the neighbour hears of it", async || {
            pair.b.has_route_to(new).await
        })
        .await;
        assert_eq!(fs::read_to_string(pair.a.config()).unwrap(), texts[CONF]);
        assert_eq!(mode(&pair.a.config()), 0o600);
        assert_eq!(mode(pair.a.config().parent().unwrap()), 0o700);
        let names: Vec<_> = fs::read_dir(pair.a.config().parent().unwrap())
            .unwrap()
            .collect();
        assert_eq!(names.len(), 1, "{names:?}");
        // Nobody was disturbed.
        let times = |all: &[Protocol]| {
            let sessions = all.iter().filter(|one| one.is_bgp());
            sessions.map(|one| one.since.clone()).collect::<Vec<_>>()
        };
        assert_eq!(times(&pair.a.protocols().await), times(&since));

        let again = RELOAD.run(&config, &socket, texts.clone()).await.unwrap();
        assert_eq!(again, Reloaded::Unchanged);
        fs::set_permissions(pair.a.config(), fs::Permissions::from_mode(0o644)).unwrap();
        let closed = RELOAD.run(&config, &socket, texts).await.unwrap();
        assert_eq!(closed, Reloaded::Confirmed { missing: vec![] });
        assert_eq!(mode(&pair.a.config()), 0o600);
    });
}

#[test]
fn sessions_that_break_and_come_back_confirm_a_change() {
    block_on(async {
        let pair = Pair::connected().await;
        let texts = pair.texts_of_a(|conf| conf.router_id = "192.0.2.77".to_owned());
        let config = by_program(&pair.a);
        let done = RELOAD.run(&config, &pair.a.socket(), texts).await.unwrap();
        assert!(matches!(done, Reloaded::Confirmed { .. }), "{done:?}");
        let status = pair.a.socket().status().await.unwrap();
        assert_eq!(status.router_id, Some("192.0.2.77".parse().unwrap()));
        pair.await_sessions().await;
    });
}

#[test]
fn a_change_that_no_session_survives_is_taken_back() {
    block_on(async {
        let pair = Pair::connected().await;
        let before = fs::read_to_string(pair.a.config()).unwrap();
        // The neighbour expects another AS.
        let texts = pair.texts_of_a(|conf| conf.local_as = 64999);
        let reload = Reload {
            patience: Duration::from_secs(3),
            ..RELOAD
        };
        let config = by_program(&pair.a);
        let done = reload.run(&config, &pair.a.socket(), texts).await.unwrap();
        let lost = Site::sessions(&pair.b).to_vec();
        assert_eq!(done, Reloaded::Undone { lost });
        pair.await_sessions().await;
        assert_eq!(fs::read_to_string(pair.a.config()).unwrap(), before);
    });
}

#[test]
fn bird_goes_back_by_itself_where_nobody_confirms() {
    block_on(async {
        let pair = Pair::connected().await;
        let texts = pair.texts_of_a(|conf| conf.local_as = 64999);
        let short = Reload {
            patience: Duration::from_secs(2),
            reserve: Duration::from_secs(1),
            ..RELOAD
        };
        let (config, socket) = (by_program(&pair.a), pair.a.socket());
        // As if this process were killed once the configuration is on trial.
        let cut = tokio::time::timeout(Duration::from_secs(1), short.run(&config, &socket, texts));
        assert!(cut.await.is_err());
        pair.await_sessions().await;
        let asked = pair.a.protocols().await;
        assert!(asked.iter().any(Protocol::is_established));
    });
}

#[test]
fn without_bird_a_checked_text_takes_its_place() {
    block_on(async {
        let pair = Pair::new();
        let (config, socket) = (by_program(&pair.a), pair.a.socket());
        let new = "10.65.78.0/26".parse().unwrap();
        let texts = pair.texts_of_a(|conf| conf.blocks.push(new));
        let done = RELOAD.run(&config, &socket, texts).await.unwrap();
        assert_eq!(done, Reloaded::Written);
        pair.a.start();
        pair.b.start();
        await_that("the neighbour hears of it", async || {
            pair.b.socket().status().await.is_ok() && pair.b.has_route_to(new).await
        })
        .await;
        let broken = Texts::from([(CONF.to_owned(), "nonsense".to_owned())]);
        let refused = RELOAD.run(&config, &socket, broken).await;
        assert!(matches!(refused, Err(Error::Config(_))), "{refused:?}");
    });
}

#[test]
fn files_that_the_main_one_includes_are_checked_and_placed_with_it() {
    block_on(async {
        let pair = Pair::connected().await;
        let config = by_program(&pair.a);
        let mut texts = pair.texts_of_a(|conf| conf.more = "include \"more.conf\";\n".to_owned());
        texts.insert("more.conf".to_owned(), "nonsense\n".to_owned());
        let refused = RELOAD.run(&config, &pair.a.socket(), texts.clone()).await;
        let Err(Error::Config(problem)) = refused else {
            panic!("{refused:?}");
        };
        let place = problem.place.unwrap();
        assert!(
            place.file.ends_with("more.conf"),
            "{}",
            place.file.display()
        );
        assert_eq!(place.line, 1);

        let more = "protocol static more4 { ipv4; route 10.65.79.0/26 blackhole; }\n";
        texts.insert("more.conf".to_owned(), more.to_owned());
        let done = RELOAD.run(&config, &pair.a.socket(), texts).await.unwrap();
        assert_eq!(done, Reloaded::Confirmed { missing: vec![] });
        let new = "10.65.79.0/26".parse().unwrap();
        await_that("the neighbour hears of it", async || {
            pair.b.has_route_to(new).await
        })
        .await;
        // Also when BIRD reads the files in place.
        pair.a
            .socket()
            .configure(&tortie_bgp::bird::Configure::default())
            .await
            .unwrap();
        assert!(pair.b.has_route_to(new).await);
    });
}
