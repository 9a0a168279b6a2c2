//! Errors in a file, at their line, with the allowed values.

use super::Place;
use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use std::fmt;

/// One problem.
#[derive(Clone, Debug)]
pub struct FileError {
    /// The problem, in one line.
    pub message: String,
    /// Its place; `None` if it is not in a file.
    pub at: Option<Place>,
    /// A short label at the caret.
    pub label: String,
    /// Allowed values, similar names, where to read more.
    pub help: Vec<String>,
    /// The text could not be parsed as TOML, so nothing else can be checked.
    pub broken: bool,
}

impl FileError {
    /// A problem without a place.
    pub fn new(message: impl Into<String>) -> FileError {
        FileError { message: message.into(), at: None, label: String::new(), help: Vec::new(), broken: false }
    }
    /// A problem at a place.
    pub fn at(at: Place, message: impl Into<String>, label: impl Into<String>) -> FileError {
        FileError { at: Some(at), label: label.into(), ..FileError::new(message) }
    }
    /// Adds a line of help.
    pub fn help(mut self, help: impl Into<String>) -> FileError {
        self.help.push(help.into());
        self
    }

    /// The problem with its lines of the file, for a terminal; `about` is what the file is: "design".
    pub fn render(&self, renderer: &Renderer, about: &str) -> String {
        let title = Level::ERROR.primary_title(self.message.as_str()).id(about);
        let mut report = vec![match &self.at {
            None => Group::with_title(title),
            Some(place) if place.source.text.is_empty() || place.span.end > place.source.text.len() => {
                Group::with_title(title).element(Origin::path(place.source.name.as_str()))
            }
            Some(place) => {
                let annotation = AnnotationKind::Primary.span(place.span.clone());
                let annotation = match self.label.as_str() {
                    "" => annotation,
                    label => annotation.label(label),
                };
                let snippet = Snippet::source(place.source.text.as_str()).line_start(1);
                title.element(snippet.path(place.source.name.as_str()).annotation(annotation))
            }
        }];
        for help in &self.help {
            report.push(Group::with_title(Level::HELP.secondary_title(help.as_str())));
        }
        renderer.render(&report)
    }
}

impl fmt::Display for FileError {
    /// In one line: `fig08.toml:12: ...`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.at {
            Some(at) => write!(f, "{}:{}: {}", at.source.name, at.line(), self.message),
            None => f.write_str(&self.message),
        }
    }
}
impl std::error::Error for FileError {}
