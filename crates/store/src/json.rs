//! Resources as the JSON that datastores keep.

use serde::Deserialize;
use serde_json::Value;
use tortie_api::{Kind, Resource};

/// Longer reasons come from values quoted inside them; nobody reads more than this.
const MAX_REASON: usize = 500;

macro_rules! decode_typed {
    ($kind:expr, $bytes:expr; $($name:ident),* $(,)?) => {
        match $kind {
            $(Kind::$name => {
                serde_json::from_slice::<tortie_api::$name>($bytes).map(Resource::from)
            })*
        }
    };
}

/// The bytes to store. The revision is left out: the datastore itself knows it.
pub(crate) fn encode(resource: &mut Resource) -> Vec<u8> {
    resource.metadata_mut().resource_version.clear();
    serde_json::to_vec(resource).expect("resources have string keys and finite numbers only")
}

/// Reads stored bytes; the error says what is wrong with them.
pub(crate) fn decode(kind: Kind, bytes: &[u8], revision: String) -> Result<Resource, String> {
    // Serde would read a list as an object without field names.
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        return Err("the value is not a JSON object".to_owned());
    }
    let mut resource = match decode_fast(kind, bytes) {
        Ok(resource) => resource,
        Err(_) => decode_lenient(kind, bytes)?,
    };
    resource.metadata_mut().resource_version = revision;
    Ok(resource)
}

/// The UID in stored bytes, without reading the rest; empty if there is none.
pub(crate) fn uid(bytes: &[u8]) -> String {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Stored {
        metadata: Metadata,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Metadata {
        uid: String,
    }
    serde_json::from_slice::<Stored>(bytes)
        .unwrap_or_default()
        .metadata
        .uid
}

/// Cuts a message to a length fit for a log line.
pub(crate) fn shorten(mut reason: String) -> String {
    if reason.len() > MAX_REASON {
        let end = (0..=MAX_REASON)
            .rev()
            .find(|&at| reason.is_char_boundary(at))
            .unwrap_or(0);
        reason.truncate(end);
        reason.push('…');
    }
    reason
}

/// Straight into the type. Fails on nulls where Go writes them, which [`decode_lenient`] reads.
fn decode_fast(kind: Kind, bytes: &[u8]) -> serde_json::Result<Resource> {
    decode_typed!(kind, bytes;
        BgpConfiguration, BgpFilter, BgpPeer, BlockAffinity, CalicoNodeStatus, ClusterInformation,
        FelixConfiguration, GlobalNetworkPolicy, GlobalNetworkSet, HostEndpoint, IpamBlock,
        IpamConfiguration, IpamHandle, IpPool, IpReservation, KubeControllersConfiguration,
        LiveMigration, NetworkPolicy, NetworkSet, Node, Profile, StagedGlobalNetworkPolicy,
        StagedKubernetesNetworkPolicy, StagedNetworkPolicy, Tier, WorkloadEndpoint,
    )
}

fn decode_lenient(kind: Kind, bytes: &[u8]) -> Result<Resource, String> {
    let value: Value = serde_json::from_slice(bytes)
        .map_err(|error| shorten(format!("the value is not JSON: {error}")))?;
    Resource::decode_stored(kind, &value).map_err(|error| shorten(error.to_string()))
}
