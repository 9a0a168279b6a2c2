//! The type of an article.

/// One article.
pub struct Topic {
    /// Its names; it is listed under the first.
    pub names: &'static [&'static str],
    /// Its title.
    pub title: &'static str,
    /// The text, in lines of at most 100 characters.
    pub text: &'static str,
}
