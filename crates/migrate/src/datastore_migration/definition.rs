//! The definition of `DatastoreMigration`, printed from the type.

use serde_json::{Map, Value, json};
use tortie_operator::Custom;

use super::object::Spec;

/// What `kubectl get` shows besides the name: heading, type, JSON path, and 1 for what only `-o wide` shows.
const COLUMNS: [(&str, &str, &str, i32); 8] = [
    ("Phase", "string", ".status.phase", 0),
    ("Types", "string", ".status.progress.typeProgress", 0),
    ("Message", "string", ".status.message", 0),
    ("Age", "date", ".metadata.creationTimestamp", 0),
    ("Current Type", "string", ".status.progress.currentType", 1),
    ("Migrated", "integer", ".status.progress.migrated", 1),
    ("Skipped", "integer", ".status.progress.skipped", 1),
    ("Conflicts", "integer", ".status.progress.conflicts", 1),
];

/// An earlier version with the same fields. Clusters may hold objects that were written in it.
const DEPRECATED: &str = "v1beta1";

/// The `CustomResourceDefinition` that lets a cluster be asked for a migration.
pub fn definition() -> Result<Value, serde_json::Error> {
    let mut definition = serde_json::to_value(Custom::<Spec>::definition()?)?;
    let mut version = definition["spec"]["versions"][0].take();
    tidy(&mut version["schema"]["openAPIV3Schema"]);
    version["additionalPrinterColumns"] = COLUMNS
        .iter()
        .map(|(name, kind, path, priority)| {
            let mut column = json!({"name": name, "type": kind, "jsonPath": path});
            if *priority > 0 {
                column["priority"] = json!(priority);
            }
            column
        })
        .collect();
    let mut deprecated = version.clone();
    deprecated["name"] = json!(DEPRECATED);
    deprecated["storage"] = json!(false);
    deprecated["deprecated"] = json!(true);
    deprecated["deprecationWarning"] = json!(
        "migration.projectcalico.org/v1beta1 DatastoreMigration is deprecated; use migration.projectcalico.org/v1"
    );
    definition["spec"]["versions"] = json!([version, deprecated]);
    Ok(definition)
}

/// Takes out what only our own reading of objects needs: what is missing is empty, and may be null.
fn tidy(schema: &mut Value) {
    let Some(fields) = schema.as_object_mut() else {
        return;
    };
    fields.remove("default");
    fields.remove("nullable");
    let properties = fields.get_mut("properties").and_then(Value::as_object_mut);
    properties
        .into_iter()
        .flat_map(Map::values_mut)
        .for_each(tidy);
    if let Some(items) = fields.get_mut("items") {
        tidy(items);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(schema: &Value) -> Vec<&str> {
        let properties = schema["properties"].as_object().unwrap();
        properties.keys().map(String::as_str).collect()
    }

    #[test]
    fn names_and_limits_are_calicos() {
        let definition = definition().unwrap();
        assert_eq!(
            definition["metadata"]["name"],
            "datastoremigrations.migration.projectcalico.org"
        );
        assert_eq!(definition["spec"]["scope"], "Cluster");
        let [v1, beta] = definition["spec"]["versions"]
            .as_array()
            .unwrap()
            .as_slice()
        else {
            panic!("{definition}");
        };
        assert_eq!([&v1["name"], &beta["name"]], ["v1", "v1beta1"]);
        assert_eq!([&v1["storage"], &beta["storage"]], [true, false]);
        assert_eq!(v1["subresources"], json!({"status": {}}));
        let schema = &v1["schema"]["openAPIV3Schema"];
        assert_eq!(schema["required"], json!(["spec"]));
        let kind = &schema["properties"]["spec"]["properties"]["type"];
        assert_eq!(kind["enum"], json!(["APIServerToCRDs"]));
        assert_eq!(kind["maxLength"], 64);
        let status = &schema["properties"]["status"];
        let mut names = fields(status);
        names.sort_unstable();
        assert_eq!(
            names,
            [
                "completedAt",
                "conditions",
                "datastoreLockedAt",
                "message",
                "phase",
                "progress",
                "startedAt"
            ]
        );
        let properties = &status["properties"];
        let phases = "Pending Migrating WaitingForConflictResolution Converged Complete Failed";
        let phases: Vec<&str> = phases.split(' ').collect();
        assert_eq!(properties["phase"]["enum"], json!(phases));
        assert_eq!(properties["startedAt"]["format"], "date-time");
        assert_eq!(properties["startedAt"]["type"], "string");
        let total = &properties["progress"]["properties"]["total"];
        assert_eq!([&total["type"], &total["format"]], ["integer", "int32"]);
        let details = &properties["progress"]["properties"]["typeDetails"];
        assert_eq!(details["x-kubernetes-list-map-keys"], json!(["kind"]));
        assert_eq!(details["items"]["required"], json!(["kind"]));
        assert!(!definition.to_string().contains("\"default\":"));
        assert!(!definition.to_string().contains("nullable"));
    }
}
