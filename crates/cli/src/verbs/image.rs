//! `nvlab image`: real tools on an image on a simulated device.

use crate::args::Image;
use crate::failure::Failure;
use crate::output::Output;
use nvlab_design::Design;
use nvlab_lab::image::{self, ImageError, ImagePlan, ImageReport};
use nvlab_report::Format;
use serde_json::json;
use std::process::{Command, Stdio};

pub fn image(output: &Output, args: &Image) -> Result<(), Failure> {
    let design = Design::load(&args.design, &args.set)?;
    let plan = ImagePlan { file: args.file.clone(), bytes: args.size, cut: args.cut, seed: args.seed };
    let report = image::run(&design, &plan, &args.commands, |command| {
        // stdout is reserved for the report.
        let shell = Command::new("sh")
            .args(["-c", command])
            .env("NVLAB_IMAGE", &args.file)
            .stdout(Stdio::from(std::io::stderr()))
            .status();
        match shell {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("`{command}` ended with {status}")),
            Err(error) => Err(format!("`{command}`: {error}")),
        }
    });
    print(output, &args.design, &report?);
    Ok(())
}

fn print(output: &Output, design: &str, report: &ImageReport) {
    if matches!(output.format, Format::Json | Format::JsonLines) {
        let steps: Vec<_> = report
            .steps
            .iter()
            .map(|step| {
                json!({
                    "command": step.command,
                    "changed_sectors": step.changed_sectors,
                    "requests": step.requests,
                    "forgotten_sectors": step.forgotten_sectors,
                })
            })
            .collect();
        let document = json!({
            "schema": "nvlab.image/1",
            "design": design,
            "steps": steps,
            "cuts": report.cuts,
            "simulated_s": report.simulated_s,
            "route": report.route,
        });
        output.print(format!("{document:#}"));
        return;
    }
    let mut text = String::new();
    for step in &report.steps {
        let forgotten = match step.forgotten_sectors {
            0 => String::new(),
            count => format!(", {count} trimmed because they are free"),
        };
        let (sectors, requests) = (step.changed_sectors, step.requests);
        text += &format!("{}: {sectors} sectors changed, {requests} requests{forgotten}\n", step.command);
    }
    if let Some(route) = &report.route {
        text += &format!(
            "{}: {} of {} sectors written went to PRAM, {} spilled, {} clusters trimmed; {:.1} % of the words overwritten there \
             changed\n",
            route.file_system,
            route.pram_written_sectors,
            route.written_sectors,
            route.spilled_sectors,
            route.clusters_trimmed,
            route.changed_share * 100.0
        );
    }
    let cuts = if report.cuts > 0 { format!(", {} power cuts", report.cuts) } else { String::new() };
    text += &format!("{:.3} s simulated{cuts}; all data read back matches", report.simulated_s);
    output.print(text);
}

impl From<ImageError> for Failure {
    fn from(error: ImageError) -> Failure {
        match error {
            ImageError::Device(_) => Failure::Check(error.to_string()),
            ImageError::Memory(_) => Failure::Machine(error.to_string()),
            _ => Failure::Input(error.to_string()),
        }
    }
}
