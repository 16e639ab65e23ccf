//! The order of messages within a flush.

use tortie_engine::Message;

/// The place of a message; within a flush it never decreases.
pub(crate) fn rank(message: &Message) -> u32 {
    match message {
        Message::DatastoreNotReady => 0,
        Message::ConfigUpdate(_) => 1,
        Message::IpSetUpdate(_) => 2,
        Message::IpSetDeltaUpdate(_) => 3,
        Message::ActivePolicyUpdate(..) => 4,
        Message::ActiveProfileUpdate(..) => 5,
        Message::WorkloadEndpointUpdate(..) | Message::HostEndpointUpdate(..) => 6,
        Message::WorkloadEndpointRemove(_) | Message::HostEndpointRemove(_) => 7,
        Message::ActiveProfileRemove(_) => 8,
        Message::ActivePolicyRemove(_) => 9,
        Message::IpSetRemove(_) => 10,
        Message::RouteRemove(_) => 15,
        Message::VtepRemove(_) | Message::VtepUpdate(_) => 16,
        Message::RouteUpdate(_) => 17,
        Message::HostMetadataRemove(_) | Message::HostMetadataUpdate(_) => 19,
        Message::IpamPoolRemove(_) | Message::IpamPoolUpdate(..) => 20,
        Message::Encapsulation(_) => 21,
        Message::GlobalBgpConfigUpdate(_) => 22,
        Message::InSync => 24,
    }
}
