//! Whether somebody on this node does what objects ask of BGP.

use tortie_bgp::bird::status::Sockets;
use tortie_bgp::speaker::Report;

use super::Found;
use crate::args::Global;
use crate::commands::up::BirdFolders;

/// Looks for who keeps BIRD here. Where no agent runs, or nothing asks for BGP, nobody is missed.
pub(super) async fn look(global: &Global, found: &mut Found) {
    let asking = found
        .cluster
        .as_ref()
        .and_then(|cluster| cluster.asking.clone());
    let Some(asking) = asking.filter(|_| found.agent.is_some()) else {
        return;
    };
    let folders = [
        BirdFolders::own_network(global),
        BirdFolders::machine(global),
    ];
    let reports = folders
        .iter()
        .filter_map(|folders| Report::read(&folders.run).ok()?);
    let mut living = reports.filter(Report::is_of_living);
    match living.next() {
        Some(Report {
            failure: Some(failure),
            ..
        }) => found.add_problem("BGP", "", &failure),
        Some(Report { has_left: true, .. }) => {
            let note = "this node has left BGP, by `tortie node shutdown`";
            found.notes.push(note.to_owned());
        }
        Some(_) => {}
        None => {
            let sockets = folders.map(|folders| Sockets::in_folder(&folders.run).main);
            for socket in sockets {
                if socket.status().await.is_ok() {
                    let note = "no `tortie bgp` keeps the BIRD that runs on this node";
                    return found.notes.push(note.to_owned());
                }
            }
            let reason = format!(
                "{asking} asks for it, and has no effect on this node: no `tortie bgp` runs here"
            );
            found.add_problem("BGP", "", &reason);
        }
    }
}
