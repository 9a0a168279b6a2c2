//! `nvlab design`: designs as texts; nothing is run.

use crate::args::DesignVerb;
use crate::failure::Failure;
use crate::output::{Output, say};
use crate::runs;
use crate::table::{Cell, Column, Table};
use nvlab_design::toml_reader::FileError;
use nvlab_design::{BUILT_IN, Design, DesignErrors};
use nvlab_report::Format;
use nvlab_run::number;
use nvlab_run::plan::Named;
use serde_json::{Map, Value, json};
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::Path;

pub fn design(output: &Output, verb: DesignVerb) -> Result<(), Failure> {
    match verb {
        DesignVerb::List => list(output),
        DesignVerb::Show { design, set } => show(output, &design, &set),
        DesignVerb::Check { files } => check(output, &files),
        DesignVerb::Diff { a, b } => diff(output, &a, &b),
        DesignVerb::Scale { design, capacity, file } => scale(output, &design, capacity, file.as_deref()),
        DesignVerb::New { file, figures: true, .. } => new_figures(output, &file),
        DesignVerb::New { file, from, .. } => new(output, &file, from.as_deref()),
        DesignVerb::Schema => {
            output.print(nvlab_design::schema::schema());
            Ok(())
        }
    }
}

fn list(output: &Output) -> Result<(), Failure> {
    let mut rows = Vec::new();
    for (name, _) in BUILT_IN {
        let design = Design::load(name, &[])?;
        let usd = design.price().total_usd();
        rows.push(vec![
            Cell::text(*name),
            Cell::new(number::bytes(design.held_bytes() as f64).to_string(), design.held_bytes()),
            Cell::or_dash(usd, |usd| Cell::new(number::usd(usd).to_string(), usd)),
            Cell::text(design.about),
        ]);
    }
    let columns = vec![
        Column::text("name", "design"),
        Column::number("capacity_bytes", "capacity"),
        Column::number("price_usd", "price of media"),
        Column::text("about", "about"),
    ];
    output.table(&Table { schema: "nvlab.designs/1", columns, rows });
    Ok(())
}

fn show(output: &Output, name: &str, sets: &[String]) -> Result<(), Failure> {
    let named = Named::load(name, sets)?;
    runs::warn_of(output, &named);
    let text = named.design.resolved_toml();
    print(output, &named.design, text.trim_start());
    Ok(())
}

/// A design, as a text for people.
fn print(output: &Output, design: &Design, text: &str) {
    match output.format {
        Format::Human => output.print(text),
        Format::Json => {
            let values = design.resolved.iter().map(|value| {
                let of = json!({ "value": value.value.to_string(), "origin": value.origin.text() });
                (value.path.clone(), of)
            });
            let values: Map<String, Value> = values.collect();
            output.print(format!(
                "{:#}",
                json!({ "schema": "nvlab.design/1", "design": design.name, "values": values })
            ));
        }
        _ => {
            let columns = vec![
                Column::text("key", "key"),
                Column::text("value", "value"),
                Column::text("origin", "origin"),
            ];
            let rows = design.resolved.iter().map(|value| {
                [value.path.clone(), value.value.to_string(), value.origin.text()].map(Cell::text).to_vec()
            });
            output.table(&Table { schema: "nvlab.design/1", columns, rows: rows.collect() });
        }
    }
}

/// All errors of all files.
fn check(output: &Output, files: &[String]) -> Result<(), Failure> {
    let mut wrong = 0;
    let mut documents = Vec::new();
    for file in files {
        let (errors, doubts) = problems(file);
        doubts.iter().for_each(|doubt| output.warn(format_args!("{file}: {doubt}")));
        if output.format == Format::Human {
            match errors.0.is_empty() {
                true => output.print(format_args!("{file}: correct")),
                false => say(format_args!("{}\n", errors.render(output.colors_errors()))),
            }
        }
        documents.push(json!({ "file": file, "errors": errors.0.iter().map(document).collect::<Vec<_>>(), "warnings": doubts }));
        wrong += errors.0.len();
    }
    if output.format != Format::Human {
        output.print(format!("{:#}", json!({ "schema": "nvlab.check/1", "files": documents })));
    }
    match wrong {
        0 => Ok(()),
        _ => Err(Failure::Input(format!(
            "{} in {}",
            number::things(wrong as u64, "error"),
            number::things(files.len() as u64, "file")
        ))),
    }
}

/// What is wrong with a design; its device is not built.
/// The errors of a design, and what is hardly meant in it if there are none.
fn problems(file: &str) -> (DesignErrors, Vec<String>) {
    match Design::load(file, &[]) {
        Ok(design) => (DesignErrors(Vec::new()), design.implausible()),
        Err(errors) => (errors, Vec::new()),
    }
}

fn document(error: &FileError) -> Value {
    json!({
        "message": error.message,
        "file": error.at.as_ref().map(|place| place.source.name.clone()),
        "line": error.at.as_ref().map(|place| place.line()),
        "help": error.help,
    })
}

fn diff(output: &Output, a: &str, b: &str) -> Result<(), Failure> {
    let (left, right) = (Named::load(a, &[])?, Named::load(b, &[])?);
    let differences = nvlab_design::diff(&left.design, &right.design);
    if differences.is_empty() && output.format == Format::Human {
        output.print("no difference");
        return Ok(());
    }
    let cell = |value: Option<String>| Cell::or_dash(value, Cell::text);
    let rows =
        differences.into_iter().map(|d| vec![Cell::text(d.path), cell(d.left), cell(d.right)]).collect();
    let named = |name, head: String| Column { name, head: head.into(), right: false };
    let columns =
        vec![Column::text("key", "key"), named("a".into(), left.name), named("b".into(), right.name)];
    output.table(&Table { schema: "nvlab.diff/1", columns, rows });
    Ok(())
}

/// A design with another capacity.
fn scale(output: &Output, argument: &str, capacity: u64, file: Option<&Path>) -> Result<(), Failure> {
    let named = Named::load(argument, &[])?;
    runs::warn_of(output, &named);
    let reference = argument.split(',').next().unwrap_or_default();
    let scaled = nvlab_design::scale::scaled(reference, &named.design, capacity)?;
    scaled.design.implausible().iter().for_each(|what| output.warn(what));
    match file {
        Some(file) => write_new(output, file, &scaled.text),
        None => {
            print(output, &scaled.design, scaled.text.trim_end());
            Ok(())
        }
    }
}

fn new(output: &Output, file: &Path, from: Option<&str>) -> Result<(), Failure> {
    let name = file.file_stem().map_or("design".into(), |stem| stem.to_string_lossy().into_owned());
    let text = match from {
        None => nvlab_design::template(&name),
        Some(from) => {
            // Called for its error message if there is no such design.
            Design::load(from, &[])?;
            let text = BUILT_IN.iter().find(|(known, _)| *known == from).map(|(_, text)| *text);
            let text =
                text.ok_or_else(|| Failure::Input(format!("{from} is not built in; copy the file instead")))?;
            renamed(text, &name)
        }
    };
    write_new(output, file, &text)
}

/// A file of figures to start from.
fn new_figures(output: &Output, file: &Path) -> Result<(), Failure> {
    let name = file.file_stem().map_or("drive".into(), |stem| stem.to_string_lossy().into_owned());
    let path = file.display();
    write_file(file, &nvlab_fit::figures::template(&name))?;
    output.note(format_args!("written: {path}\nfit it:  nvlab fit {path} -o {name}-design.toml"));
    Ok(())
}

/// Writes a design to a file that must not exist.
fn write_new(output: &Output, file: &Path, text: &str) -> Result<(), Failure> {
    write_file(file, text)?;
    let path = file.display();
    output.note(format_args!("written: {path}\ncheck it:  nvlab design check {path}"));
    Ok(())
}

/// Writes a file that must not exist.
fn write_file(file: &Path, text: &str) -> Result<(), Failure> {
    let created = OpenOptions::new().write(true).create_new(true).open(file);
    let written = created.and_then(|mut file| file.write_all(text.as_bytes()));
    match written {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            Err(Failure::Input(format!("{} exists and is not overwritten", file.display())))
        }
        Err(error) => Err(Failure::machine(file.display(), &error)),
    }
}

/// A built-in design under another name.
fn renamed(text: &str, name: &str) -> String {
    let mut done = false;
    let line = |line: &str| {
        if !done && line.starts_with("name ") && line.contains('=') {
            done = true;
            let key = line.split('=').next().unwrap_or_default();
            return format!("{key}= {name:?}\n");
        }
        format!("{line}\n")
    };
    text.lines().map(line).collect()
}
