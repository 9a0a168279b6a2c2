//! `nvlab explain`: keys, metrics and small languages in a few words.

use crate::failure::Failure;
use crate::output::Output;
use nvlab_lab::explain;
use nvlab_lab::report::Format;
use nvlab_lab::report::metric;
use serde_json::json;

pub fn explain(output: &Output, topic: Option<&str>) -> Result<(), Failure> {
    let text = match topic {
        None => explain::contents() + "\nMetrics: nvlab explain metrics\n",
        Some("metrics" | "metric") => metrics(),
        Some(topic) => match explain::explain(topic).or_else(|| about_metric(topic)) {
            Some(text) => text,
            None => return Err(Failure::Input(explain::suggestion(topic))),
        },
    };
    match output.format {
        Format::Json | Format::JsonLines => {
            output.print(json!({ "schema": "nvlab.explain/1", "topic": topic, "text": text }));
        }
        _ => output.print(text),
    }
    Ok(())
}

fn metrics() -> String {
    let mut text = String::from("Metrics: columns of compare (-m) and names in --assert\n\n");
    for metric in metric::metrics() {
        text += &format!("  {:22} {}\n", metric.name, metric.about);
    }
    text
}

fn about_metric(name: &str) -> Option<String> {
    let metric = metric::find(name).ok()?;
    let better = match metric.better {
        metric::Better::Less => "\n  less is better",
        metric::Better::More => "\n  more is better",
        metric::Better::Neither => "",
    };
    Some(format!("{}\n\n  {}{better}\n", metric.name, metric.about))
}
