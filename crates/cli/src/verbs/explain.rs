//! `nvlab explain`: short texts on keys, metrics and small languages.

use crate::failure::Failure;
use crate::output::Output;
use nvlab_lab::explain;
use nvlab_report::Format;
use serde_json::json;

pub fn explain(output: &Output, topic: Option<&str>) -> Result<(), Failure> {
    let text = explain::text(topic).map_err(Failure::Input)?;
    match output.format {
        Format::Json | Format::JsonLines => {
            output.print(json!({ "schema": "nvlab.explain/1", "topic": topic, "text": text }));
        }
        _ => output.print(text),
    }
    Ok(())
}
