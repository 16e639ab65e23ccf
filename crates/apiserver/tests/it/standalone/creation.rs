//! What is made by applying.

use serde_json::json;

use crate::standalone::support::{Alone, TIERS};

const APPLY: &str = "application/apply-patch+yaml";

#[tokio::test(flavor = "multi_thread")]
async fn applying_makes_objects_but_not_by_their_state() {
    let alone = Alone::start().await;
    let body = "{spec: {order: 1, defaultAction: Pass}}";
    let path = format!("{TIERS}/evil/status?fieldManager=test");
    let refused = alone.ask("PATCH", &path, APPLY, body).await;
    assert_eq!(refused.code, 404, "{refused:?}");
    assert_eq!(
        refused.message(),
        "tiers.projectcalico.org \"evil\" not found"
    );
    assert_eq!(alone.get(&format!("{TIERS}/evil")).await.code, 404);

    let made = alone
        .post(TIERS, &json!({"metadata": {"name": "plain"}}))
        .await;
    assert_eq!(made.code, 201, "{made:?}");
    assert!(made.head.contains("application/json"), "{made:?}");
    let path = format!("{TIERS}/good?fieldManager=test");
    assert_eq!(alone.ask("PATCH", &path, APPLY, body).await.code, 201);
    let path = format!("{TIERS}/good/status?fieldManager=test");
    let told = alone.ask("PATCH", &path, APPLY, "{status: {}}").await;
    assert_eq!(told.code, 200, "{told:?}");
}
