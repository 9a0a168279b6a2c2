//! Every problem of a design at once.

use crate::toml_reader::FileError;
use annotate_snippets::Renderer;
use std::fmt;

/// Every problem of a design.
#[derive(Clone, Debug)]
pub struct DesignErrors(pub Vec<FileError>);

impl DesignErrors {
    /// All problems as text, with colours if asked for.
    pub fn render(&self, colour: bool) -> String {
        let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
        let texts: Vec<String> = self.0.iter().map(|error| error.render(&renderer, "design")).collect();
        texts.join("\n\n")
    }
}

impl fmt::Display for DesignErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}
impl std::error::Error for DesignErrors {}

impl From<FileError> for DesignErrors {
    fn from(error: FileError) -> DesignErrors {
        DesignErrors(vec![error])
    }
}
