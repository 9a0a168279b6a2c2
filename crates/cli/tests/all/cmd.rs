//! What the commands print, word for word, and their exit status: `tests/cmd/*.trycmd`. Each file runs in a
//! copy of the folder `NAME.in` beside it (a copy because there is a `NAME.out`). `TRYCMD=overwrite` replaces the
//! expectation by what is printed now: review the difference.

#[test]
fn commands_print_what_they_should() {
    trycmd::TestCases::new()
        .env("NO_COLOR", "1")
        .env("NVLAB_NO_PROGRESS", "1")
        .env("NVLAB_OUT", "runs")
        .env("NVLAB_CACHE", "runs/.devices")
        .register_bin("nvlab", std::path::Path::new(env!("CARGO_BIN_EXE_nvlab")))
        .case("tests/cmd/*.trycmd");
}

/// The example of the README, the questions of docs/questions.md, and their answers. Each has runs of its own: what one has
/// done already the other would not do again, and say so.
#[test]
fn questions_have_the_answers_that_are_documented() {
    for (name, case) in [("readme", "../../README.md"), ("questions", "../../docs/questions.md")] {
        let runs = std::env::temp_dir().join(format!("nvlab-{name}-{}", std::process::id()));
        trycmd::TestCases::new()
            .env("NO_COLOR", "1")
            .env("NVLAB_NO_PROGRESS", "1")
            .env("NVLAB_OUT", runs.display().to_string())
            .env("NVLAB_CACHE", runs.join("devices").display().to_string())
            .register_bin("nvlab", std::path::Path::new(env!("CARGO_BIN_EXE_nvlab")))
            .case(case)
            .run();
        let _ = std::fs::remove_dir_all(&runs);
    }
}
