//! Files that a reference names: designs, parts and stacks are built in, or in the folder of the file that names
//! them.

use crate::toml_reader::{Source, SourceKind};
use nvlab_units::suggest::nearest;
use std::path::Path;
use std::sync::Arc;

/// Files of one kind.
pub(super) struct Library {
    /// The kind of a file: `part`.
    pub what: &'static str,
    /// The prefix of built-in names in messages: `parts/`.
    pub prefix: &'static str,
    /// The suffix of their names.
    pub suffix: &'static str,
    /// The built-in ones: name and text.
    pub built_in: &'static [(&'static str, &'static str)],
    /// How they are parsed.
    pub kind: SourceKind,
}

impl Library {
    /// Whether a reference names a file, not a built-in one.
    pub fn is_file(reference: &str) -> bool {
        reference.ends_with(".toml") || reference.contains('/')
    }

    /// Reads a file; `beside` is the folder it is relative to. Otherwise an error message.
    pub fn read(&self, reference: &str, beside: Option<&Path>) -> Result<Arc<Source>, String> {
        let path = beside.map_or_else(|| Path::new(reference).to_path_buf(), |folder| folder.join(reference));
        match std::fs::read_to_string(&path) {
            Ok(text) => Ok(self.source(path.display().to_string(), text)),
            Err(error) => Err(format!("cannot read the {} {}: {error}", self.what, path.display())),
        }
    }

    /// A built-in file. Otherwise help: similar names.
    pub fn built_in(&self, name: &str) -> Result<Arc<Source>, String> {
        if let Some((name, text)) = self.built_in.iter().find(|(known, _)| *known == name) {
            return Ok(self.source(format!("{}{name}{}", self.prefix, self.suffix), text.to_string()));
        }
        let names = self.built_in.iter().map(|(name, _)| *name);
        Err(match nearest(name, names.clone()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("built-in {}s: {}", self.what, names.collect::<Vec<_>>().join(", ")),
        })
    }

    fn source(&self, name: String, text: String) -> Arc<Source> {
        Arc::new(Source { kind: self.kind, name, text })
    }
}
