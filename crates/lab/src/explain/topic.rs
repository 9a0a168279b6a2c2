//! What an article is.

/// One article.
pub struct Topic {
    /// Names it is found by; the first is the one it is listed under.
    pub names: &'static [&'static str],
    /// Its title.
    pub title: &'static str,
    /// The text, in lines of at most 100 characters.
    pub text: &'static str,
}
