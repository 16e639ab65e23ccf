//! Bodies in protobuf, good and bad. That every kind is read right is tested with what a real kube-apiserver writes.

use super::*;

fn varint(number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    prost::encoding::encode_varint(number, &mut bytes);
    bytes
}

fn number(field: u64, value: u64) -> Vec<u8> {
    [varint(field << 3), varint(value)].concat()
}

fn bytes(field: u64, value: impl AsRef<[u8]>) -> Vec<u8> {
    let value = value.as_ref();
    let length = varint(value.len() as u64);
    [varint(field << 3 | 2), length, value.to_vec()].concat()
}

fn body(kind: &str, raw: &[u8]) -> Vec<u8> {
    let of = [bytes(1, "v1"), bytes(2, kind)].concat();
    [
        MAGIC.to_vec(),
        bytes(1, of),
        bytes(2, raw),
        bytes(3, ""),
        bytes(4, ""),
    ]
    .concat()
}

#[test]
fn what_is_empty_is_left_out_only_where_json_has_it_not() {
    let time = [number(1, 1_700_000_000), number(2, 5)].concat();
    let metadata = [
        bytes(1, "a"),
        bytes(2, ""),
        number(7, 0),
        bytes(8, ""),
        number(10, 0),
        bytes(9, time),
        bytes(11, [bytes(1, "tier"), bytes(2, "gold")].concat()),
        bytes(11, bytes(1, "empty")),
    ];
    let raw = [
        bytes(1, metadata.concat()),
        bytes(3, [bytes(1, "file"), bytes(2, b"\0\x01")].concat()),
        number(4, 0),
        bytes(99, "from the future"),
    ];
    let object = decode(&body("ConfigMap", &raw.concat())).unwrap();
    let expected = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "a",
            "deletionTimestamp": "2023-11-14T22:13:20Z",
            "deletionGracePeriodSeconds": 0,
            "labels": {"tier": "gold", "empty": ""},
        },
        "binaryData": {"file": "AAE="},
        "immutable": false,
    });
    assert_eq!(object, expected);
}

#[test]
fn fields_of_an_inner_message_and_packed_numbers_are_read() {
    let context = [
        bytes(4, [varint(7), varint(300)].concat()),
        number(4, 9),
        number(5, u64::MAX),
    ];
    let volume = [bytes(1, "tmp"), bytes(2, bytes(2, bytes(1, "Memory")))];
    let spec = [bytes(1, volume.concat()), bytes(14, context.concat())];
    let object = decode(&body("Pod", &bytes(2, spec.concat()))).unwrap();
    let expected = json!({
        "volumes": [{"name": "tmp", "emptyDir": {"medium": "Memory"}}],
        "securityContext": {"supplementalGroups": [7, 300, 9], "fsGroup": -1},
    });
    assert_eq!(object["spec"], expected);
}

#[test]
fn what_is_no_object_is_refused() {
    let reason = |bytes: &[u8]| decode(bytes).unwrap_err().reason;
    assert_eq!(reason(b"{}"), Reason::BadRequest);
    assert_eq!(reason(&body("Tier", b"")), Reason::UnsupportedMediaType);
    let whole = body("Pod", &bytes(1, bytes(1, "a")));
    assert!(decode(&whole).is_ok());
    for length in 0..whole.len() - 4 {
        assert!(decode(&whole[..length]).is_err(), "{length}");
    }
    for raw in [
        bytes(1, bytes(1, b"\xff")),
        number(1, 1),
        bytes(1, number(1, 1)),
        bytes(1, bytes(7, "text")),
        vec![0xff; 11],
        bytes(
            1,
            bytes(8, [number(1, 1 << 60), number(2, 1 << 40)].concat()),
        ),
        bytes(1, bytes(17, bytes(7, bytes(1, "{")))),
        vec![3],
    ] {
        let failure = decode(&body("Pod", &raw)).unwrap_err();
        assert_eq!(failure.reason, Reason::BadRequest, "{raw:?}");
        assert!(failure.message.starts_with("the body is not protobuf: "));
    }
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(raw: Vec<u8>, kind in "Pod|Node|Service|Lease|DeleteOptions") {
        let _ = decode(&body(&kind, &raw));
        let _ = decode(&raw);
    }
}
