use serde_json::json;
use tortie_api::NetworkPolicy;

use super::*;

const POLICY: &str = "/calico/resources/v3/projectcalico.org/networkpolicies/ns/";
const BLOCK: &str = "/calico/ipam/v2/assignment/ipv4/block/10.65.0.0-30";

fn decode(path: &str, value: &[u8]) -> Result<Resource, String> {
    let location = Location::parse(path).unwrap();
    Stored {
        location: &location,
        value,
        create_revision: 7,
        mod_revision: 9,
    }
    .decode()
}

#[track_caller]
fn check_name(path_name: &str, metadata: &Value, tier: &str, expected: &str) {
    let value = json!({ "metadata": metadata, "spec": { "tier": tier } }).to_string();
    let policy = decode(&format!("{POLICY}{path_name}"), value.as_bytes()).unwrap();
    assert_eq!(policy.metadata().name, expected);
    assert_eq!(policy.metadata().namespace, "ns");
    assert!(policy.metadata().annotations.is_empty());
}

#[test]
fn the_name_of_a_policy_is_in_an_annotation_or_else_its_path_without_the_default_tier() {
    let annotated = |name| json!({ "annotations": { METADATA_ANNOTATION: name } });
    check_name("default.a", &annotated(r#"{"name":"b"}"#), "default", "b");
    check_name("default.a", &annotated("{"), "default", "a");
    check_name("default.a", &json!({}), "", "a");
    check_name("default.a", &json!({}), "other", "default.a");
    check_name("other.a", &json!({}), "other", "other.a");
    check_name("default.", &json!({}), "", "default.");
    check_name(
        "a",
        &json!({ "name": "ignored", "annotations": null }),
        "",
        "a",
    );
}

#[test]
fn a_policy_is_stored_with_its_name_in_an_annotation_and_without_a_revision() {
    let mut policy = NetworkPolicy::default();
    policy.metadata.name = "a\"b".to_owned();
    policy.metadata.resource_version = "5".to_owned();
    let mut resource = Resource::from(policy);
    let value: Value = serde_json::from_slice(&encode(&mut resource)).unwrap();
    let annotations = json!({ METADATA_ANNOTATION: r#"{"name":"a\"b"}"# });
    assert_eq!(
        value["metadata"],
        json!({ "name": "a\"b", "annotations": annotations })
    );
    assert_eq!(value["kind"], "NetworkPolicy");
    assert_eq!(value["apiVersion"], "projectcalico.org/v3");
    assert!(resource.metadata().annotations.is_empty());
}

#[test]
fn a_block_keeps_everything_on_its_way_through_etcd() {
    let stored = json!({
        "cidr": "10.65.0.0/30",
        "affinity": "host:n1",
        "affinity_claim_time": "2026-01-01T00:00:00Z",
        "allocations": [0, null, null, 1],
        "unallocated": [2, 1],
        "attributes": [
            { "handle_id": "h", "secondary": { "node": "n1" }, "alternateOwnerAttrs": { "pod": "p" } },
            { "releasedAt": "2026-01-01T00:00:00Z" },
        ],
        "sequenceNumber": 1_767_225_600_000_000_001_u64,
        "sequenceNumberForAllocation": { "0": 1_767_225_600_000_000_000_u64 },
        "deleted": false,
    });
    let mut block = decode(BLOCK, stored.to_string().as_bytes()).unwrap();
    assert_eq!(block.metadata().name, "10-65-0-0-30");
    assert_eq!(block.metadata().resource_version, "9");
    assert_eq!(
        serde_json::from_slice::<Value>(&encode(&mut block)).unwrap(),
        stored
    );
}

#[test]
fn values_that_go_writes_for_nothing_are_read_as_nothing() {
    let value = br#"{"cidr":"10.65.0.0/30","affinity":null,"allocations":null,"unallocated":null,
        "attributes":null,"sequenceNumberForAllocation":null,"hostAffinity":"n2"}"#;
    let block = IpamBlock::try_from(decode(BLOCK, value).unwrap()).unwrap();
    assert_eq!(block.spec.affinity.as_deref(), Some("host:n2"));
    let handle = decode("/calico/ipam/v2/handle/H", br#"{"block":null}"#).unwrap();
    assert_eq!(handle.metadata().name, "H");
    let affinity = decode("/calico/ipam/v2/host/n/ipv4/block/10.65.0.0-30", b"").unwrap();
    assert_eq!(
        BlockAffinity::try_from(affinity).unwrap().spec.state,
        BlockAffinityState::Unset
    );
}

#[test]
fn what_is_no_object_is_an_error_with_a_short_reason() {
    let long = format!("\"{}\"", "x".repeat(10_000));
    for value in [
        "",
        "nonsense",
        "[]",
        "null",
        &long,
        r#"{"spec":{"order":"x"}}"#,
    ] {
        let reason = decode(&format!("{POLICY}a"), value.as_bytes()).unwrap_err();
        assert!(reason.len() < 600, "{reason}");
    }
    assert!(decode(BLOCK, br#"{"cidr":"10.66.0.0/30"}"#).is_err());
    assert!(decode(BLOCK, b"\xff\xfe").is_err());
}

#[test]
fn uids_of_bare_objects_tell_later_ones_of_the_name_apart() {
    assert_eq!(bare_uid(Kind::IpamHandle, 7).len(), 36);
    assert_ne!(bare_uid(Kind::IpamHandle, 7), bare_uid(Kind::IpamHandle, 8));
    assert_ne!(bare_uid(Kind::IpamHandle, 7), bare_uid(Kind::IpamBlock, 7));
}

#[test]
fn stored_ipam_objects_in_the_vectors_are_read_and_written_the_same() {
    let vectors = tortie_testkit::vectors("ipam.json");
    let mut checked = 0;
    for (path, value) in vectors
        .iter()
        .filter_map(|vector| vector["final"].as_object())
        .flatten()
    {
        // The vectors have no real times.
        let text = value.to_string().replace("<time>", "2026-01-02T03:04:05Z");
        let Some(location) = Location::parse(path) else {
            assert_eq!(path, "/calico/ipam/v2/config");
            continue;
        };
        let stored = Stored {
            location: &location,
            value: text.as_bytes(),
            create_revision: 1,
            mod_revision: 1,
        };
        let mut resource = stored
            .decode()
            .unwrap_or_else(|reason| panic!("{path}: {reason}"));
        assert_eq!(super::super::paths::of_resource(&resource).unwrap(), *path);
        let written: Value = serde_json::from_slice(&encode(&mut resource)).unwrap();
        assert_eq!(
            written,
            serde_json::from_str::<Value>(&text).unwrap(),
            "{path}"
        );
        checked += 1;
    }
    assert!(checked > 40, "only {checked} objects are in the vectors");
}

#[test]
fn the_settings_of_ipam_are_stored_as_its_own_record() {
    let path = "/calico/ipam/v2/config";
    let value = r#"{"strict_affinity":true,"auto_allocate_blocks":true,"maxBlocksPerHost":3,"ipCooldownSeconds":60}"#;
    let mut resource = decode(path, value.as_bytes()).unwrap();
    let Resource::IpamConfiguration(config) = &resource else {
        panic!("{resource:?}");
    };
    assert_eq!(config.metadata.name, "default");
    assert!(config.spec.strict_affinity && config.spec.auto_allocate_blocks);
    assert_eq!(
        (
            config.spec.max_blocks_per_host,
            config.spec.ip_cooldown_seconds
        ),
        (3, 60)
    );
    assert_eq!(encode(&mut resource), value.as_bytes());
    // What is left out is false.
    let Resource::IpamConfiguration(empty) = decode(path, b"{}").unwrap() else {
        panic!("it has the settings' path");
    };
    assert!(!empty.spec.auto_allocate_blocks);
}
