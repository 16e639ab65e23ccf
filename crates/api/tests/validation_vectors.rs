//! What a create accepts, and what it stores, against recorded answers.
use serde_json::Value;
use tortie_api::{Kind, Resource};

fn run(case: &Value) -> Result<Value, String> {
    let kind = case["kind"].as_str().unwrap();
    Kind::from_name(kind).ok_or("kind")?;
    let mut object = case["object"].clone();
    object["apiVersion"] = "projectcalico.org/v3".into();
    object["kind"] = kind.into();
    let mut resource = Resource::decode_strict(&object).map_err(|p| format!("decode: {p}"))?;
    if !resource.metadata().resource_version.is_empty() { return Err("resourceVersion".into()); }
    if let Resource::BgpPeer(p) = &resource && !p.spec.filters.is_empty() { return Err("filters".into()); }
    resource.set_defaults();
    resource.validate().map_err(|p| format!("create: {p}"))?;
    let mut v = resource.to_value();
    for k in ["uid", "creationTimestamp", "resourceVersion"] { v["metadata"].as_object_mut().unwrap().remove(k); }
    Ok(v)
}

#[test]
fn vectors() {
    let Ok(dir) = std::env::var("TORTIE_VECTORS") else { return };
    let cases: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(format!("{dir}/validation.json")).unwrap()).unwrap();
    let mut bad = 0;
    for case in &cases {
        let want = case["valid"] == true;
        match run(case) {
            Ok(v) if want => {
                if v != case["defaulted"] { bad += 1; println!("DEFAULTS {}\n   got  {}\n   want {}", case["kind"], v, case["defaulted"]); }
            }
            Err(_) if !want => {}
            Ok(_) => { bad += 1; println!("ACCEPTED {} {}\n    {}", case["kind"], case["object"], case["error"]); }
            Err(e) => { bad += 1; println!("REFUSED {} {}\n    {}", case["kind"], case["object"], e); }
        }
    }
    assert_eq!(bad, 0, "of {}", cases.len());
}
