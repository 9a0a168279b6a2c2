//! Parts of designs that several controllers share: each file has the keys, their explanations and the code that
//! reads them.
//!
//! | module | what |
//! |---|---|
//! | [`memories`] | media by name: where data and map lie; which kinds share which keys |
//! | [`map`] | a map that is not all in memory |
//! | [`array`] | how the chips are wired |
//! | [`space`] | how much of the array the host can address |
//! | [`service`] | trim, checked reads, the controller's own time |
//! | [`buffer`], [`cleaning`], [`wear`] | the write buffer; which block is cleaned next; wear levelling |
//! | [`slc`] | blocks with one bit per cell, and the cache in them |
//! | [`path`] | the link and software between host and device |

pub mod array;
pub mod buffer;
pub mod cleaning;
pub mod map;
pub mod memories;
pub mod path;
pub mod service;
pub mod slc;
pub mod space;
pub mod wear;
