//! From what is said of a drive to its design, and from what is asked of a design to the best one.
//!
//! 1. A design is searched in the space of what is usual ([`priors`]), by closed forms first and by simulation then: the search
//!    moves by the closed forms, times what a simulation says they miss ([`fit`](mod@fit)).
//! 2. Nothing is one number: every number of a design has an interval, and what no figure depends on is said to be as usual.
//! 3. The same seed finds the same, whatever the number of cores; runs are kept by the engine, so that a search that was
//!    interrupted goes on.
//! 4. A fit is judged by prediction: [`held_out`] fits all figures but one and predicts that one.
//!
//! | module | what |
//! |---|---|
//! | [`figures`] | what is said of a drive: its facts, and figures with value, conditions and tolerance |
//! | [`priors`] | an interval for every number of a design, by generation, class and link |
//! | [`model`] | from the variables of a search to a design, its closed forms and its runs |
//! | `search` | CMA-ES, elliptical slice sampling, a Gaussian process |
//! | [`fit`](mod@fit) | the most probable design, intervals, residuals, contradictions |
//! | [`choose`](mod@choose) | the other way round: the best design that meets requirements |
//! | [`probe`] | measures a drive, with fio |
//! | [`held_out`] | leave one out: what is predicted of each figure from the others |

pub mod choose;
pub mod figures;
pub mod fit;
pub mod held_out;
pub mod model;
pub mod priors;
pub mod probe;
mod search;
