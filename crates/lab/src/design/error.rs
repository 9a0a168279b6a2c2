//! What is wrong with a design: every problem at once, each at its line, with what is allowed instead.

use super::source::Place;
use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use std::fmt;

/// One problem.
#[derive(Clone, Debug)]
pub struct DesignError {
    /// What is wrong, in one line.
    pub message: String,
    /// Where; `None` if it is nowhere in a file.
    pub at: Option<Place>,
    /// A few words beside the caret.
    pub label: String,
    /// What is allowed, what was probably meant, where to read more.
    pub help: Vec<String>,
    /// The text could not be read as TOML, so that nothing else can be said about it.
    pub broken: bool,
}

impl DesignError {
    /// A problem without a place.
    pub fn new(message: impl Into<String>) -> DesignError {
        DesignError {
            message: message.into(),
            at: None,
            label: String::new(),
            help: Vec::new(),
            broken: false,
        }
    }
    /// A problem at a place.
    pub fn at(at: Place, message: impl Into<String>, label: impl Into<String>) -> DesignError {
        DesignError { at: Some(at), label: label.into(), ..DesignError::new(message) }
    }
    /// Adds a line of help.
    pub fn help(mut self, help: impl Into<String>) -> DesignError {
        self.help.push(help.into());
        self
    }

    fn render(&self, renderer: &Renderer) -> String {
        let title = Level::ERROR.primary_title(self.message.as_str()).id("design");
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

/// Every problem of a design.
#[derive(Clone, Debug)]
pub struct DesignErrors(pub Vec<DesignError>);

impl DesignErrors {
    /// All problems as text, with colours if asked for.
    pub fn render(&self, colour: bool) -> String {
        let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
        let texts: Vec<String> = self.0.iter().map(|error| error.render(&renderer)).collect();
        texts.join("\n\n")
    }
}

impl fmt::Display for DesignErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}
impl std::error::Error for DesignErrors {}

impl From<DesignError> for DesignErrors {
    fn from(error: DesignError) -> DesignErrors {
        DesignErrors(vec![error])
    }
}

/// The known word nearest to `word`, if it is near enough to have been meant.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (word.chars().count() / 3).max(1);
    let distances = known.into_iter().map(|candidate| (distance(word, candidate), candidate));
    distances.filter(|(d, _)| *d <= limit).min_by_key(|(d, _)| *d).map(|(_, candidate)| candidate)
}

/// Insertions, deletions and replacements between two words, swapped neighbours counted as one.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) =
        (a.to_lowercase().chars().collect(), b.to_lowercase().chars().collect());
    let mut before: Vec<usize> = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}
