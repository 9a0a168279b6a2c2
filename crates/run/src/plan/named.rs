//! A design as named in one argument: `ssd-tlc,ftl.clean.kind=fifo`.

use nvlab_design::{Design, DesignErrors};
use nvlab_units::quantity::display_bytes;

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

    /// Warnings about implausible values, and about another part under the name of the design.
    pub fn doubts(&self) -> Vec<String> {
        let mut doubts = self.design.implausible();
        doubts.extend((0..self.changes.len()).filter_map(|change| self.replaced(change)));
        doubts
    }

    /// Warns if a change replaces a part by another one, which changes the capacity.
    fn replaced(&self, change: usize) -> Option<String> {
        let (path, _) = self.changes[change].split_once('=')?;
        let medium = path.trim().strip_prefix("media.")?.strip_suffix(".part")?;
        let design = self.name.split(' ').next()?;
        let mut others = self.changes.clone();
        others.remove(change);
        let before = Design::load(design, &others).ok()?;
        let part = |design: &Design| design.media.get(medium)?.part_name.clone();
        let (now, was) = (self.design.capacity_bytes(), before.capacity_bytes());
        (now != was).then_some(format!(
            "media.{medium}.part: with {} instead of {}, {design} has a capacity of {}, not {}; `nvlab design scale` \
             adapts the number of dies",
            part(&self.design)?,
            part(&before)?,
            display_bytes(now),
            display_bytes(was)
        ))
    }

    /// A design that has been read already.
    pub fn new(name: &str, changes: Vec<String>, design: Design) -> Named {
        let words: Vec<&str> = std::iter::once(name).chain(changes.iter().map(String::as_str)).collect();
        Named { name: words.join(" "), changes, design }
    }
}

/// The design and its changes. A comma that no `KEY=` follows belongs to the value before it.
pub fn split(argument: &str) -> (&str, Vec<String>) {
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
    use super::{Named, split};

    #[test]
    fn another_part_under_the_name_of_a_design_is_said() {
        let doubts = |argument: &str| Named::load(argument, &[]).unwrap().doubts();
        assert_eq!(
            doubts("qlc-16tb,media.qlc.part=tlc-2022"),
            [
                "media.qlc.part: with tlc-2022 instead of qlc-2022, qlc-16tb has a capacity of 3.46 TiB, not 14 TiB; \
              `nvlab design scale` adapts the number of dies"
            ]
        );
        // The same capacity, and no part at all.
        assert_eq!(doubts("tlc-pslc,media.dram.part=dram,ftl.spare=20%"), Vec::<String>::new());
    }

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
