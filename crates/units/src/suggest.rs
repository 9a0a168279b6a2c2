//! "did you mean ...?": the nearest known word.

/// The known word nearest to `word`, case ignored: the only one that begins with it, or one that is close enough to be a likely
/// typo, at most a third of its letters inserted, deleted, replaced or swapped with a neighbour.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let (word, limit) = (word.to_lowercase(), (word.chars().count() / 3).max(1));
    let known: Vec<&str> = known.into_iter().collect();
    let mut longer = known.iter().filter(|candidate| candidate.to_lowercase().starts_with(&word));
    if let (true, Some(only), None) = (word.len() >= PREFIX_MIN, longer.next(), longer.next()) {
        return Some(only);
    }
    let distance = |candidate: &str| strsim::osa_distance(&word, &candidate.to_lowercase());
    known
        .into_iter()
        .map(|candidate| (distance(candidate), candidate))
        .filter(|&(distance, _)| distance <= limit)
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, candidate)| candidate)
}

/// Letters of the beginning of a word, at least, that stands for the word.
const PREFIX_MIN: usize = 3;

/// `; did you mean 'x'?`, or nothing.
pub fn hint<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, known).map(|near| format!("; did you mean '{near}'?")).unwrap_or_default()
}

/// The names with dots of which `wanted` is a whole part (`waf.padding` of `padding`), if there are some and not many, as a list in
/// back quotes without the outer ones; else the nearest name.
pub fn near_or_with<'a>(wanted: &str, known: impl Iterator<Item = &'a str> + Clone) -> Option<String> {
    const LISTED_MAX: usize = 6;
    let has_part = |name: &&str| name.split('.').any(|part| part == wanted);
    let with: Vec<&str> = known.clone().filter(has_part).collect();
    match with.len() {
        1..=LISTED_MAX => Some(with.join("`, `")),
        _ => nearest(wanted, known).map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised_and_other_words_are_not() {
        let known = ["iodepth", "rwmixread", "bs", "size"];
        assert_eq!(nearest("iodpeth", known), Some("iodepth"));
        assert_eq!(nearest("rwmixraed", known), Some("rwmixread"));
        assert_eq!(nearest("sise", known), Some("size"));
        assert_eq!(nearest("latency", known), None);
        assert_eq!(nearest("retention", ["rotation", "retention_years"]), Some("retention_years"));
        assert_eq!(hint("sise", known), "; did you mean 'size'?");
    }
    #[test]
    fn a_part_of_a_name_is_answered_with_the_names_that_have_it() {
        let near = |word| near_or_with(word, ["waf.padding", "waf", "read.p99", "write.p99"].into_iter());
        assert_eq!(near("padding").as_deref(), Some("waf.padding"));
        assert_eq!(near("p99").as_deref(), Some("read.p99`, `write.p99"));
        assert_eq!(near("wav").as_deref(), Some("waf"));
    }
}
