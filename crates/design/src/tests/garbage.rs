//! Garbage is answered with errors, never with a panic.

use super::{SMALL, page_map};
use crate::*;
use proptest::prelude::*;

/// Every key of a design, with real names of media.
fn paths() -> Vec<String> {
    keys::all().flat_map(|key| ["tlc", "dram"].map(|medium| key.path.replace('*', medium))).collect()
}

#[test]
fn a_number_key_refuses_what_is_no_number() {
    let mut refused = 0;
    for path in paths() {
        let text = keys::table()
            .find(&path, None)
            .is_some_and(|key| matches!(key.shape, crate::toml_reader::datum::Shape::Text));
        for garbage in ["", "garbage", "-1", "1e999", "[]", "4 parsecs", "0x", "nan", "\"\"", "[\"1 us\", 3]"]
        {
            let result = Design::load("ssd-tlc", &[format!("{path}={garbage}")]);
            if text && path != "media.tlc.part" {
                continue;
            }
            let errors = result.expect_err(&format!("{path}={garbage} should be refused")).to_string();
            assert!(errors.contains("--set"), "{path}={garbage}\n{errors}");
            refused += 1;
        }
    }
    assert!(refused > 500);
}

/// Numbers that are right by themselves and absurd together.
#[test]
fn extreme_numbers_resolve_or_are_errors() {
    for path in paths() {
        for value in [
            "0",
            "1",
            "4294967295",
            "0 B",
            "1 B",
            "7 B",
            "18446744073709551615 B",
            "24 h",
            "0 ns",
            "99 %",
            "8 s/B",
            "1 B/s",
            "none",
        ] {
            match Design::load("ssd-tlc", &[format!("{path}={value}")]) {
                Ok(design) => {
                    let _ = (design.flash_config(0), page_map(&design).config(0), design.price());
                    assert!(design.resolved_toml().contains("[ftl]"), "{path}={value}");
                    assert!(!design.canonical_text().is_empty(), "{path}={value}");
                }
                Err(errors) => {
                    assert!(errors.to_string().starts_with("error[design]: "), "{path}={value}: {errors}")
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn any_text_is_an_error(text in "\\PC{0,60}") {
        let parsed = Design::parse("x.toml", &text, std::slice::from_ref(&text));
        prop_assert!(parsed.is_err_and(|errors| !errors.render(true).is_empty()), "{text}");
    }

    #[test]
    fn a_broken_design_is_an_error(at in 0..SMALL.len(), cut in 0..6usize, put in "[\\[\\]\"=.a-z0-9 %\n]{0,4}") {
        let text = format!("{}{put}{}", &SMALL[..at], &SMALL[(at + cut).min(SMALL.len())..]);
        if let Err(errors) = Design::parse("x.toml", &text, &[]) {
            prop_assert!(errors.render(false).starts_with("error[design]: "), "{text}");
        }
    }

    #[test]
    fn any_value_of_any_key_resolves_or_is_an_error(path in prop::sample::select(paths()), value in "[-0-9.e]{0,8} ?[a-zA-Z/%]{0,6}") {
        match Design::load("ssd-tlc", &[format!("{path}={value}")]) {
            Ok(design) => {
                let _ = (design.flash_config(0), page_map(&design).config(0));
                prop_assert!(design.resolved_toml().contains("[ftl]"));
            }
            Err(errors) => prop_assert!(errors.render(false).starts_with("error[design]: ")),
        }
    }
}
