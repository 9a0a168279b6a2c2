//! FSMS under a real FAT implementation, held against a plain image, over hFTL and over log blocks; power cuts; volumes that lie.

mod devices;
mod files;
mod hostile;
mod image;
mod journal;
mod power_cut;
mod rules;
mod volume;
mod walk;
