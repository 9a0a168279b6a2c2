//! Programs that the compiler refuses, and what it says.

#[test]
fn wrong_programs_are_refused() {
    trybuild::TestCases::new().compile_fail("tests/refused/*.rs");
}
