//! A design as it is named in one argument: `ssd-tlc,ftl.clean.kind=fifo`.

use crate::design::{Design, DesignErrors};

/// A design with what was changed of it.
#[derive(Clone, Debug)]
pub struct Named {
    /// For results: `ssd-tlc ftl.clean.kind=fifo`.
    pub name: String,
    /// What was changed of it: `ftl.clean.kind=fifo`.
    pub changes: Vec<String>,
    /// The design.
    pub design: Design,
}

impl Named {
    /// Loads the design that an argument names, changed by what stands after its commas and by `sets`.
    pub fn load(argument: &str, sets: &[String]) -> Result<Named, DesignErrors> {
        let (name, mut changes) = split(argument);
        changes.extend(sets.iter().cloned());
        let design = Design::load(name, &changes)?;
        Ok(Named::new(name, changes, design))
    }

    /// A design that has been read already.
    pub fn new(name: &str, changes: Vec<String>, design: Design) -> Named {
        let words: Vec<&str> = std::iter::once(name).chain(changes.iter().map(String::as_str)).collect();
        Named { name: words.join(" "), changes, design }
    }
}

/// The design and its changes. A comma that no `KEY=` follows belongs to the value before it.
pub(crate) fn split(argument: &str) -> (&str, Vec<String>) {
    let mut parts = argument.split(',');
    let name = parts.next().unwrap_or_default();
    let mut sets: Vec<String> = Vec::new();
    for part in parts {
        match sets.last_mut() {
            Some(last) if !part.contains('=') => *last = format!("{last},{part}"),
            _ => sets.push(part.trim().to_string()),
        }
    }
    (name, sets)
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn changes_stand_after_commas() {
        let owned = |texts: &[&str]| texts.iter().map(|text| text.to_string()).collect::<Vec<_>>();
        assert_eq!(split("ssd-tlc"), ("ssd-tlc", vec![]));
        let (name, sets) = split("./a.toml,ftl.clean.kind=fifo, ftl.spare=20%");
        assert_eq!((name, sets), ("./a.toml", owned(&["ftl.clean.kind=fifo", "ftl.spare=20%"])));
        assert_eq!(
            split("a,media.f.read=[\"1 us\",\"2 us\"],x=1").1,
            owned(&["media.f.read=[\"1 us\",\"2 us\"]", "x=1"])
        );
    }
}
