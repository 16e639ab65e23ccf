//! What is told of changes.

use tortie_kernel::nft::{Change, Changed, Family, Monitor, Socket, Table, Transaction};

use crate::nft::support::in_world;

/// What is told, in short.
fn told(monitor: &mut Monitor) -> Vec<String> {
    let mut all = Vec::new();
    let tell = |change: Change<'_>| {
        let Change {
            family,
            table,
            what,
            is_removal,
        } = change;
        let sign = if is_removal { '-' } else { '+' };
        let what = match what {
            Changed::Table => "table".to_owned(),
            Changed::Chain(name) => format!("chain {name}"),
            Changed::Set(name) => format!("set {name}"),
        };
        all.push(format!("{sign}{family} {table}: {what}"));
    };
    assert!(monitor.drain(tell).unwrap(), "there is room for these");
    all
}

#[test]
fn changes_by_others_are_told_and_ones_own_are_not() {
    in_world(|world| {
        let table = Table::new(Family::Ip, "t");
        let add = |transaction: &mut Transaction| {
            transaction.add_table(&table);
            transaction.add_chain(&table, "c");
        };
        world.commit(add).unwrap();
        let mut second = Socket::open().unwrap();
        second.tables().unwrap();
        let own = [world.socket.port().unwrap(), second.port().unwrap()];
        assert!(own[0] != own[1] && !own.contains(&0), "{own:?}");
        let mut monitor = Monitor::open(&own).unwrap();

        world.commit(|t| t.add_chain(&table, "d")).unwrap();
        let mut transaction = Transaction::new();
        transaction.delete_chain(&table, "d");
        second.commit(&transaction).unwrap();
        assert_eq!(told(&mut monitor), [""; 0]);

        world.nft(&["add set ip t s { type ipv4_addr ; }"]);
        world.nft(&["add element ip t s { 192.0.2.1 }"]);
        world.nft(&["add rule ip t c accept"]);
        world.nft(&["flush chain ip t c"]);
        let expected = [
            "+ip t: set s",
            "+ip t: set s",
            "+ip t: chain c",
            "-ip t: chain c",
        ];
        assert_eq!(told(&mut monitor), expected);
        world.nft(&["delete table ip t"]);
        let gone = told(&mut monitor);
        assert!(gone.contains(&"-ip t: table".to_owned()), "{gone:?}");

        // Everybody else still tells everything.
        let mut all = Monitor::open(&[]).unwrap();
        world.commit(add).unwrap();
        assert_eq!(told(&mut all), ["+ip t: table", "+ip t: chain c"]);
        assert_eq!(told(&mut monitor), [""; 0]);
    });
}
