//! Searches: deterministic by their seed whatever the number of cores, since a generation is drawn before any of it is evaluated.
//!
//! What is searched is a vector of numbers that are standard normal before anything is known: a prior turns each into a number
//! of a design, by its quantile. So one space holds times, counts and choices, its origin is the most usual design, and the
//! distance from it is how unusual a design is.
//!
//! | file | what |
//! |---|---|
//! | `normal` | the normal distribution and its quantiles |
//! | `cma` | CMA-ES: the most probable point |
//! | `slice` | elliptical slice sampling: the points that are nearly as probable |
//! | `process` | a Gaussian process: what runs not made yet would measure, and how surely |

pub mod cma;
pub mod normal;
pub mod process;
pub mod slice;
