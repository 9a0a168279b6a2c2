//! The simulation against closed forms, at full size: what `nvlab check-theory` prints.

use nvlab_run::theory::{Check, check_all};

#[test]
fn the_simulation_meets_theory() {
    let mut wrong = Vec::new();
    let all = check_all(|check: &Check| {
        let Check { what, expected, measured, .. } = check;
        if !check.holds() {
            wrong.push(format!("{what}: {expected:.4} expected, {measured:.4} measured"));
        }
    });
    assert!(all && wrong.is_empty(), "{}", wrong.join("\n"));
}
