//! Which of the two API groups holds the custom resources.

use std::error::Error as StdError;
use std::time::Duration;

use tortie_api::crd::Group;

use super::failure::unreachable;
use crate::error::Result;

/// Longest time to wait for the API server's list of groups.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Asks the API server at an address. Where it does not say, the older group is taken, as upstream does.
pub(super) async fn discover(client: &kube::Client, address: &str) -> Result<Group> {
    let groups = match tokio::time::timeout(TIMEOUT, client.list_api_groups()).await {
        Ok(Ok(groups)) => groups,
        Ok(Err(error @ (kube::Error::HyperError(_) | kube::Error::Service(_)))) => {
            return Err(unreachable(address, &error));
        }
        Ok(Err(error)) => {
            let error = &error as &dyn StdError;
            tracing::warn!(
                error,
                "The API groups cannot be listed; assuming crd.projectcalico.org/v1"
            );
            return Ok(Group::V1);
        }
        Err(_) => {
            tracing::warn!(
                "The API groups were not listed in time; assuming crd.projectcalico.org/v1"
            );
            return Ok(Group::V1);
        }
    };
    Ok(choose(
        groups.groups.iter().map(|group| group.name.as_str()),
    ))
}

/// The newer group alone is made of custom resources; beside the older one it is served by an aggregated API server,
/// which stores in the older one.
fn choose<'a>(served: impl Iterator<Item = &'a str>) -> Group {
    let (mut has_v3, mut has_v1) = (false, false);
    for name in served {
        has_v3 |= name == Group::V3.name();
        has_v1 |= name == Group::V1.name();
    }
    if has_v3 && !has_v1 {
        Group::V3
    } else {
        Group::V1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newer_group_is_used_only_where_the_older_one_is_missing() {
        assert_eq!(choose(["apps", "projectcalico.org"].into_iter()), Group::V3);
        assert_eq!(
            choose(["projectcalico.org", "crd.projectcalico.org"].into_iter()),
            Group::V1
        );
        assert_eq!(choose(["crd.projectcalico.org"].into_iter()), Group::V1);
        assert_eq!(choose(["apps"].into_iter()), Group::V1);
    }
}
