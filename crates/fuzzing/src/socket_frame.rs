//! Requests on the datastore's socket: no bytes make the server panic, and a frame that is one lies within them.

use tortie_store::socket;

const HEAD_BYTES: usize = 13;

/// Checks it with these bytes, and panics if it does not hold.
pub fn check(data: &[u8]) {
    if let Ok(Some(head)) = socket::decode_request(data) {
        assert!(head.length + HEAD_BYTES <= data.len());
        let whole = &data[..head.length + HEAD_BYTES];
        assert!(matches!(socket::decode_request(whole), Ok(Some(again)) if again == head));
        assert!(matches!(
            socket::decode_request(&whole[..whole.len() - 1]),
            Ok(None)
        ));
    }
    // The bytes as the content of a whole frame, which chance would hardly find.
    let mut frame = u32::try_from(data.len())
        .unwrap_or(u32::MAX)
        .to_be_bytes()
        .to_vec();
    frame.extend([0; 9]);
    frame.extend(data);
    let _ = socket::decode_request(&frame);
}
