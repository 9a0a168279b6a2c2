//! FSMS under a real FAT implementation, held against a plain image, over hFTL and over log blocks; power cuts.

mod devices;
mod files;
mod image;
mod power_cut;
mod rules;
mod walk;
