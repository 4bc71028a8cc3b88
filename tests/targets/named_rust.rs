// Planted Rust for tests of names: generics, traits, closures, modules.
use std::collections::HashMap;
mod deep {
    pub struct Pair<A>(pub A, pub A);
    impl<A: std::fmt::Debug + Clone> Pair<A> {
        #[inline(never)]
        pub fn show(&self) -> String {
            format!("{:?}", self.0.clone())
        }
    }
    pub trait Query {
        fn query(&self) -> u64;
    }
    impl Query for u32 {
        #[inline(never)]
        fn query(&self) -> u64 {
            (*self as u64) * 3
        }
    }
}
use deep::Query;

#[inline(never)]
fn hot(v: &[u64]) -> u64 {
    v.iter().map(|x| x.wrapping_mul(31)).filter(|x| x % 3 == 0).sum()
}

fn main() {
    let n = std::env::args().count() as u64;
    let v: Vec<u64> = (0..n * 100).collect();
    let mut m = HashMap::new();
    m.insert(n, hot(&v));
    println!("{:?} {} {}", m, deep::Pair(n, n).show(), (n as u32).query());
}
