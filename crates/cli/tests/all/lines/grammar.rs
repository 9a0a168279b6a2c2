//! What can be typed, according to the program's help, and lines drawn from it.

use super::values::{self, Values};
use crate::common::Folder;
use nvlab_units::Rng;
use std::fmt;

/// An option or a positional argument.
#[derive(Clone, Debug, PartialEq)]
pub struct Slot {
    /// `--html`; empty for a positional argument.
    pub name: String,
    /// The placeholder of its value in the help: `FILE`; empty for a flag.
    pub value: String,
    /// May be given several times, or take several values.
    many: bool,
    /// A positional argument that is optional.
    optional: bool,
}

/// A verb with all that can follow it.
#[derive(Debug)]
struct Verb {
    words: Vec<String>,
    options: Vec<Slot>,
    positions: Vec<Slot>,
}

/// Everything that can be typed.
#[derive(Debug)]
pub struct Grammar {
    verbs: Vec<Verb>,
    values: Values,
}

/// A command line.
#[derive(Debug)]
pub struct Line {
    /// The arguments.
    pub arguments: Vec<String>,
    outputs: Vec<String>,
}

impl Line {
    /// Files and folders it may change, as it names them.
    pub fn outputs(&self) -> &[String] {
        &self.outputs
    }
}

impl fmt::Display for Line {
    /// As a shell reads it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("nvlab")?;
        for argument in &self.arguments {
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,".contains(c);
            match !argument.is_empty() && argument.chars().all(plain) {
                true => write!(f, " {argument}")?,
                false => write!(f, " '{}'", argument.replace('\'', "'\\''"))?,
            }
        }
        Ok(())
    }
}

/// Verbs that are left out, and why.
const LEFT_OUT: [&str; 3] = ["help", "doctor", "stack"];
/// Options that are left out: real mounts outlive a program that is killed.
const OPTIONS_LEFT_OUT: [&str; 1] = ["--fuse"];

impl Grammar {
    /// From the help of every verb.
    pub fn of_the_program() -> Grammar {
        let folder = Folder::new("fuzz-grammar");
        let mut verbs = Vec::new();
        read(&folder, &[], &mut verbs);
        let words: Vec<String> = verbs.iter().map(|verb| verb.words.join(" ")).collect();
        for known in [
            "run",
            "compare",
            "sweep",
            "serve",
            "cut",
            "image",
            "trace convert",
            "design new",
            "report",
            "reproduce",
        ] {
            assert!(words.iter().any(|verb| verb == known), "no {known} among {words:?}");
        }
        let run = &verbs[words.iter().position(|verb| verb == "run").unwrap()];
        for (name, value) in
            [("--set", "KEY=VALUE"), ("--until", "LIMIT"), ("--html", "FILE"), ("--json", "")]
        {
            assert!(
                run.options.iter().any(|slot| slot.name == name && slot.value == value),
                "{name}: {run:?}"
            );
        }
        assert_eq!((run.positions.len(), run.positions[0].value.as_str()), (1, "DESIGN"));
        Grammar { verbs, values: Values::new() }
    }

    /// Line `number` of a seed.
    pub fn line(&self, seed: u64, number: u64) -> Line {
        let mut rng = Rng::stream(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number, "command lines");
        let rng = &mut rng;
        // Half of the lines simulate.
        let verb = match rng.below(2) {
            0 => &self.verbs[self.verbs.iter().position(|verb| verb.words == ["run"]).unwrap()],
            _ => &self.verbs[rng.below(self.verbs.len() as u64) as usize],
        };
        let mut line = Line { arguments: verb.words.clone(), outputs: Vec::new() };
        let name = verb.words.join(" ");
        for slot in values::always(&name) {
            line.arguments.extend([slot.0.to_string(), self.values.of(rng, slot.0, slot.1)]);
        }
        for _ in 0..[0, 0, 1, 1, 2, 3, 5][rng.below(7) as usize] {
            let slot = &verb.options[rng.below(verb.options.len() as u64) as usize];
            self.option(rng, slot, &name, &mut line);
        }
        for slot in &verb.positions {
            if slot.value == "PROGRAM" || (slot.optional && rng.chance(0.3)) {
                continue;
            }
            for _ in 0..if slot.many { 1 + rng.below(3) } else { 1 } {
                let value = self.values.of(rng, "", &slot.value);
                if values::is_output(&name, "", &slot.value) {
                    line.outputs.push(value.clone());
                }
                line.arguments.push(value);
            }
        }
        if rng.chance(0.03) {
            let place = rng.below(line.arguments.len() as u64 + 1) as usize;
            line.arguments.insert(place, values::garbage(rng));
        }
        // A server serves a program that ends at once.
        if verb.positions.iter().any(|slot| slot.value == "PROGRAM") {
            let program = ["true", "false", "no-such-program"][rng.below(3) as usize];
            line.arguments.extend(["--".to_string(), program.to_string()]);
        }
        line
    }

    fn option(&self, rng: &mut Rng, slot: &Slot, verb: &str, line: &mut Line) {
        if OPTIONS_LEFT_OUT.contains(&slot.name.as_str()) {
            return;
        }
        if slot.value.is_empty() {
            return line.arguments.push(slot.name.clone());
        }
        let value = self.values.of(rng, &slot.name, &slot.value);
        if values::is_output(verb, &slot.name, &slot.value) {
            line.outputs.push(value.clone());
        }
        match rng.below(4) {
            0 => line.arguments.push(format!("{}={value}", slot.name)),
            _ => line.arguments.extend([slot.name.clone(), value]),
        }
    }
}

/// Reads the help of a verb and of those below it.
fn read(folder: &Folder, words: &[String], verbs: &mut Vec<Verb>) {
    let arguments: Vec<&str> = words.iter().map(String::as_str).chain(["-h"]).collect();
    let output = folder.run(&arguments);
    assert!(output.status.success(), "{arguments:?}");
    let help = String::from_utf8(output.stdout).unwrap();
    let (mut below, mut options, mut positions) = (Vec::new(), Vec::new(), Vec::new());
    let mut section = "";
    for line in help.lines() {
        match line.strip_suffix(':') {
            Some(head) if !line.starts_with(' ') => section = head,
            _ => {}
        }
        let Some(entry) = line.strip_prefix("  ").filter(|entry| !entry.starts_with("        ")) else {
            continue;
        };
        match section {
            "Commands" if !entry.starts_with(' ') => {
                below.extend(entry.split_whitespace().next().map(str::to_string))
            }
            "Options" | "Global options" => options.extend(slot(entry)),
            "Arguments" => positions.extend(position(entry)),
            _ => {}
        }
    }
    for name in below.iter().filter(|name| !LEFT_OUT.contains(&name.as_str())) {
        read(folder, &[words, std::slice::from_ref(name)].concat(), verbs);
    }
    // A verb with verbs below it is typed alone, too.
    if !words.is_empty() {
        verbs.push(Verb { words: words.to_vec(), options, positions });
    }
}

/// `-s, --set <KEY=VALUE>  Change ...`.
fn slot(entry: &str) -> Option<Slot> {
    let entry = entry.trim_start();
    let long = entry.find("--")?;
    if long > 4 || !entry.starts_with('-') {
        return None;
    }
    let end = entry[long..]
        .find(|c: char| !(c.is_ascii_alphanumeric() || c == '-'))
        .map_or(entry.len(), |at| long + at);
    let name = entry[long..end].to_string();
    let rest = entry[end..].trim_start_matches("...");
    let value =
        rest.strip_prefix(" <").or_else(|| rest.strip_prefix(" [<")).and_then(|rest| rest.split('>').next());
    Some(Slot { name, value: value.unwrap_or_default().to_string(), many: false, optional: true })
}

/// `<DESIGN>...  Design: ...`.
fn position(entry: &str) -> Option<Slot> {
    let entry = entry.trim_start();
    let optional = entry.starts_with('[');
    let rest = entry.strip_prefix(['<', '['])?;
    let end = rest.find(['>', ']'])?;
    let many = rest[end + 1..].starts_with("...");
    Some(Slot { name: String::new(), value: rest[..end].to_string(), many, optional })
}
