//! The file that the running code was loaded from.

use std::io;
use std::path::PathBuf;

/// The file that this code was loaded from: the program, or the shared library that it is part of, as the Python extension.
/// The system says so of every mapping.
pub fn own_file() -> io::Result<PathBuf> {
    let address = own_file as fn() -> io::Result<PathBuf> as usize;
    let maps = std::fs::read_to_string("/proc/self/maps")?;
    let found = maps.lines().find_map(|line| file_at(line, address));
    found.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no file is mapped where this code is"))
}

/// The file of a line of `maps`, if it covers an address: `from-to rights offset device inode  file`.
fn file_at(line: &str, address: usize) -> Option<PathBuf> {
    let (from, rest) = line.split_once('-')?;
    let to = rest.split(' ').next()?;
    let hex = |text| usize::from_str_radix(text, 16).ok();
    let file = line.find('/').map(|at| PathBuf::from(&line[at..]))?;
    (hex(from)?..hex(to)?).contains(&address).then_some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_is_its_own_program() {
        assert_eq!(own_file().unwrap(), std::env::current_exe().unwrap());
        let line = "7f00-7fff r-xp 00002000 fe:00 131  /usr/lib/a b.so";
        assert_eq!(file_at(line, 0x7f00), Some(PathBuf::from("/usr/lib/a b.so")));
        assert_eq!(file_at(line, 0x7fff), None);
        assert_eq!(file_at("7f00-7fff rw-p 00000000 00:00 0 ", 0x7f00), None);
    }
}
