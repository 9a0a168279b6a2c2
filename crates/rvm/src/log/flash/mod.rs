//! A log on flash.

pub mod mini_log;
