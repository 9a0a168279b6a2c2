//! An out-of-core matrix product C = A B of doubles. Each matrix is a file of square tiles, one behind the other; memory
//! holds one tile of each matrix. A tile of C is computed in whole: for each, a row of tiles of A and a column of tiles
//! of B are read.

use crate::Result;
use crate::direct::{Buffer, DirectFile, Durability};
use nvlab_units::Rng;
use std::path::{Path, PathBuf};

#[derive(Clone, Copy)]
pub struct Size {
    /// Rows and columns of a tile, a multiple of 32: a tile is whole blocks of the device, and the columns are taken by 8.
    tile: usize,
    /// Tiles in a row of a matrix.
    tiles: usize,
}

impl Size {
    /// 2560 x 2560: three matrices of 50 MiB. The talk has 30,000 x 30,000, of which 1/128 are 2652 x 2652.
    pub const RECORDED: Size = Size { tile: 256, tiles: 10 };

    fn order(self) -> usize {
        self.tile * self.tiles
    }
    fn tile_bytes(self) -> usize {
        self.tile * self.tile * size_of::<f64>()
    }
    fn offset(self, row: usize, column: usize) -> u64 {
        ((row * self.tiles + column) * self.tile_bytes()) as u64
    }
}

pub struct Product {
    folder: PathBuf,
    size: Size,
}

/// Vectors of Freivalds' check: a wrong product passes each with a chance of at most 1/2.
const VECTORS: usize = 16;

impl Product {
    pub fn in_folder(folder: &Path, size: Size) -> Product {
        Product { folder: folder.to_path_buf(), size }
    }

    fn file(&self, name: &str) -> Result<DirectFile> {
        DirectFile::open(&self.folder.join(name), Durability::OnSync)
    }

    /// Makes A and B of numbers between -1 and 1, and C of zeros.
    pub fn load(&self) -> Result<String> {
        let (mut rng, mut tile) = (Rng::new(30_000), Buffer::new(self.size.tile_bytes()));
        let bytes = self.size.offset(self.size.tiles, 0);
        for name in ["a", "b", "c"] {
            let file = DirectFile::create(&self.folder.join(name), bytes)?;
            for offset in (0..bytes).step_by(self.size.tile_bytes()) {
                let zero = name == "c";
                tile.of_mut::<f64>().fill_with(|| if zero { 0.0 } else { 2.0 * rng.unit() - 1.0 });
                file.write(offset, tile.bytes())?;
            }
            file.sync()?;
        }
        Ok(format!("matrices of {0} x {0}, {bytes} bytes each", self.size.order()))
    }

    pub fn run(&self) -> Result<String> {
        let (size, bytes) = (self.size, self.size.tile_bytes());
        let [a, b, c] = [self.file("a")?, self.file("b")?, self.file("c")?];
        let [mut left, mut right, mut sum] = [Buffer::new(bytes), Buffer::new(bytes), Buffer::new(bytes)];
        for row in 0..size.tiles {
            for column in 0..size.tiles {
                sum.of_mut::<f64>().fill(0.0);
                for inner in 0..size.tiles {
                    a.read(size.offset(row, inner), left.bytes_mut())?;
                    b.read(size.offset(inner, column), right.bytes_mut())?;
                    multiply(size.tile, left.of(), right.of(), sum.of_mut());
                }
                c.write(size.offset(row, column), sum.bytes())?;
            }
        }
        c.sync()?;
        Ok(format!("{} multiplications of tiles, {} bytes of memory", size.tiles.pow(3), 3 * bytes))
    }

    /// Freivalds' check: C x = A (B x) for random vectors x of -1 and 1.
    pub fn verify(&self) -> Result<String> {
        let mut rng = Rng::new(77);
        let order = self.size.order();
        for _ in 0..VECTORS {
            let x: Vec<f64> = (0..order).map(|_| if rng.below(2) == 0 { -1.0 } else { 1.0 }).collect();
            let expected = self.times("a", &self.times("b", &x)?)?;
            let found = self.times("c", &x)?;
            // Rounding: a sum of n^2 products of numbers below 1 in a random order of signs is some n, each with its
            // error of 2^-53; a hundred times that is still far below any wrong element.
            let tolerance = 100.0 * order as f64 * (order as f64) * f64::EPSILON;
            for (row, (found, expected)) in found.iter().zip(&expected).enumerate() {
                let off = (found - expected).abs();
                if off.is_nan() || off > tolerance {
                    return Err(
                        format!("row {row} of the product is wrong: off by {off:e} of {expected:e}").into()
                    );
                }
            }
        }
        Ok(format!("the product passes Freivalds' check with {VECTORS} vectors"))
    }

    fn times(&self, name: &str, x: &[f64]) -> Result<Vec<f64>> {
        let (size, file) = (self.size, self.file(name)?);
        let (mut tile, mut product) = (Buffer::new(size.tile_bytes()), vec![0.0; x.len()]);
        for row in 0..size.tiles {
            for column in 0..size.tiles {
                file.read(size.offset(row, column), tile.bytes_mut())?;
                let x = &x[column * size.tile..][..size.tile];
                let sums = &mut product[row * size.tile..][..size.tile];
                for (line, sum) in tile.of::<f64>().chunks_exact(size.tile).zip(sums) {
                    *sum += line.iter().zip(x).map(|(a, b)| a * b).sum::<f64>();
                }
            }
        }
        Ok(product)
    }
}

/// Rows of A and columns of B whose products are kept in registers.
const ROWS: usize = 4;
const COLUMNS: usize = 8;

/// `sum += left * right`, row by row.
fn multiply(tile: usize, left: &[f64], right: &[f64], sum: &mut [f64]) {
    assert!(tile.is_multiple_of(ROWS) && tile.is_multiple_of(COLUMNS));
    assert!([left.len(), right.len(), sum.len()] == [tile * tile; 3]);
    let mut strip = vec![[0.0; COLUMNS]; tile];
    for column in (0..tile).step_by(COLUMNS) {
        for (inner, line) in strip.iter_mut().enumerate() {
            line.copy_from_slice(&right[inner * tile + column..][..COLUMNS]);
        }
        for row in (0..tile).step_by(ROWS) {
            let lines: [&[f64]; ROWS] = std::array::from_fn(|line| &left[(row + line) * tile..][..tile]);
            let mut kept = [[0.0; COLUMNS]; ROWS];
            for (inner, right) in strip.iter().enumerate() {
                for (kept, line) in kept.iter_mut().zip(lines) {
                    for (kept, right) in kept.iter_mut().zip(right) {
                        *kept += line[inner] * right;
                    }
                }
            }
            for (line, kept) in kept.iter().enumerate() {
                let sums = &mut sum[(row + line) * tile + column..][..COLUMNS];
                sums.iter_mut().zip(kept).for_each(|(sum, kept)| *sum += kept);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Size = Size { tile: 32, tiles: 3 };

    #[test]
    fn a_tile_is_multiplied_as_by_definition() {
        let mut rng = Rng::new(3);
        let mut random = || (0..32 * 32).map(|_| rng.below(9) as f64 - 4.0).collect::<Vec<f64>>();
        let (left, right, start) = (random(), random(), random());
        let mut sum = start.clone();
        multiply(32, &left, &right, &mut sum);
        for row in 0..32 {
            for column in 0..32 {
                // Whole numbers: exact in any order.
                let product: f64 = (0..32).map(|k| left[row * 32 + k] * right[k * 32 + column]).sum();
                assert_eq!(sum[row * 32 + column], start[row * 32 + column] + product);
            }
        }
    }

    #[test]
    fn one_wrong_element_is_found() {
        let folder = tempfile::tempdir_in(".").unwrap();
        let product = Product::in_folder(folder.path(), SMALL);
        product.load().unwrap();
        assert!(product.verify().is_err(), "C is zero");
        product.run().unwrap();
        product.verify().unwrap();
        let c = product.file("c").unwrap();
        let mut tile = Buffer::new(SMALL.tile_bytes());
        for (row, column, element) in [(0, 0, 0), (2, 1, 500), (2, 2, 1023)] {
            c.read(SMALL.offset(row, column), tile.bytes_mut()).unwrap();
            let right = tile.of::<f64>()[element];
            tile.of_mut::<f64>()[element] = right + 1e-6;
            c.write(SMALL.offset(row, column), tile.bytes()).unwrap();
            assert!(product.verify().is_err(), "tile {row} {column}, element {element}");
            tile.of_mut::<f64>()[element] = right;
            c.write(SMALL.offset(row, column), tile.bytes()).unwrap();
        }
        product.verify().unwrap();
    }
}
