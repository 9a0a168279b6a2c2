//! Results as other programs read them: every document fits the published JSON Schema, and says nothing that the schema
//! does not.

use crate::common::Folder;
use serde_json::Value;
use std::path::Path;

const PUBLISHED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/results.schema.json");
const UNTIL: [&str; 4] = ["--precondition", "fresh", "--until", "1000 io"];

fn printed(folder: &Folder, arguments: &[&str]) -> String {
    let output = folder.run(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The schema with nothing allowed that it does not describe.
fn closed(schema: &Value) -> Value {
    let mut closed = schema.clone();
    // Not in branches of `anyOf`, which are themselves references or closed objects.
    fn close(value: &mut Value) {
        match value {
            Value::Object(object) => {
                object.values_mut().for_each(close);
                if object.contains_key("properties") && object.get("type") == Some(&"object".into()) {
                    object.insert("unevaluatedProperties".into(), false.into());
                }
            }
            Value::Array(values) => values.iter_mut().for_each(close),
            _ => {}
        }
    }
    close(&mut closed);
    closed
}

#[test]
fn the_published_schema_is_that_of_this_version() {
    let now = printed(&Folder::new("schema-now"), &["report", "--schema"]);
    if std::env::var_os("NVLAB_UPDATE").is_some() {
        std::fs::write(PUBLISHED, &now).unwrap();
    }
    let published = std::fs::read_to_string(PUBLISHED).unwrap();
    assert!(published == now, "docs/results.schema.json is out of date: run this test with NVLAB_UPDATE=1");
}

#[test]
fn every_result_fits_the_schema() {
    let folder = Folder::new("schema");
    let schema: Value = serde_json::from_str(&printed(&folder, &["report", "--schema"])).unwrap();
    let (open, closed) =
        (jsonschema::validator_for(&schema).unwrap(), jsonschema::validator_for(&closed(&schema)).unwrap());
    let check = |text: &str, from: &str| -> Value {
        let document: Value = serde_json::from_str(text).unwrap();
        assert!(open.is_valid(&document), "{from}: {}", open.validate(&document).unwrap_err());
        assert!(closed.is_valid(&document), "{from}: {}", closed.validate(&document).unwrap_err());
        document
    };
    let with = |arguments: &[&'static str], more: &[&'static str]| [arguments, &UNTIL[..], more].concat();
    // Every optional part of a result: flash, memory, lines, PRAM, a log, stages, tenants.
    let runs: [&[&str]; 7] = [
        &["run", "bench-4g", "-w", "zipf read=50% qd=4"],
        &["run", "envy", "-w", "tpca rate=10k/s"],
        &["run", "cxl-ms-ssd", "-w", "words page=4KiB span=1GiB load=70%"],
        &["run", "hftl-fsms", "-w", "iozone mode=write record=4KiB file=1MiB"],
        &["run", "rvm-flash", "-w", "debit-credit until=100transactions"],
        &["run", "bench-4g,path.stages=io-uring", "-w", "uniform rw=randread bs=4KiB threads=2"],
        &["run", "bench-4g", "-w", "zipf rate=1k/s", "-w", "uniform read=100% rate=1k/s"],
    ];
    let mut parts = std::collections::BTreeSet::new();
    for run in runs {
        let run = with(run, &["--json", "--assert", "iops > 0"]);
        let run = if run[1] == "rvm-flash" { [&run[..4], &["--json"]].concat() } else { run };
        let document = check(&printed(&folder, &run), &run.join(" "));
        parts.extend(document.as_object().unwrap().keys().cloned());
    }
    for part in ["flash", "media", "memory", "lines", "pram", "durable", "software", "tenants", "asserts"] {
        assert!(parts.contains(part), "no run had `{part}`");
    }
    let several = with(runs[0], &["--json", "-n", "2"]);
    assert_eq!(check(&printed(&folder, &several), "-n 2")["runs"].as_array().unwrap().len(), 2);
    let compare = ["compare", "bench-4g", "bench-4g,ftl.spare=20%", "-w", "zipf read=50%", "-n", "2"];
    check(&printed(&folder, &with(&compare, &["--json"])), "compare");
    for line in printed(&folder, &with(&compare, &["--format", "jsonl"])).lines() {
        check(line, "a line of compare");
    }
    let mut kept = 0;
    for entry in std::fs::read_dir(folder.0.join("runs")).unwrap() {
        let file = entry.unwrap().path().join("result.json");
        if Path::new(&file).exists() {
            let mut document = check(&std::fs::read_to_string(&file).unwrap(), "a kept result");
            document["price"]["total"] = 1.into();
            assert!(!closed.is_valid(&document), "a field that the schema does not know");
            document["seed"] = "one".into();
            assert!(!open.is_valid(&document), "a seed that is a text");
            kept += 1;
        }
    }
    assert!(kept >= 9, "{kept}");
}
