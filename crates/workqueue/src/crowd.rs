//! Keys beyond the bound of a hash table, in their own order.

use std::cmp::Ordering;

use crate::panics;

/// `Ord::cmp` of a key type that has it.
pub(crate) type Order<K> = fn(&K, &K) -> Ordering;

/// Number of entries of a full chunk.
const CHUNK: usize = 512;

/// Numbers of keys that a hash table does not take, because too many keys share their hash value. The keys are stored
/// elsewhere.
///
/// Finding, inserting and removing take logarithmic time. `Ord` of keys is code of the user: if it panics, the key counts
/// as absent.
pub(crate) struct Crowd<K> {
    /// `None` if keys have no order: then this stays empty.
    order: Option<Order<K>>,
    /// Sorted by key. No chunk is empty.
    chunks: Vec<Vec<u32>>,
}

/// Where a number is, or belongs.
#[derive(Clone, Copy)]
struct Position {
    chunk: usize,
    at: usize,
}

impl<K> Crowd<K> {
    pub(crate) fn new(order: Option<Order<K>>) -> Self {
        Self { order, chunks: Vec::new() }
    }

    pub(crate) fn order(&self) -> Option<Order<K>> {
        self.order
    }

    /// Finds the number of a key. `key_of` returns the key of a number.
    pub(crate) fn find<'a>(&self, key: &K, key_of: impl Fn(u32) -> Option<&'a K>) -> Option<u32>
    where
        K: 'a,
    {
        match self.search(key, key_of)? {
            Ok(found) => Some(self.chunks[found.chunk][found.at]),
            Err(_) => None,
        }
    }

    /// Inserts the number of a key that is absent. Returns whether keys have an order.
    pub(crate) fn insert<'a>(&mut self, number: u32, key: &K, key_of: impl Fn(u32) -> Option<&'a K>) -> bool
    where
        K: 'a,
    {
        let Some(Ok(position) | Err(position)) = self.search(key, key_of) else { return false };
        let Some(chunk) = self.chunks.get_mut(position.chunk) else {
            self.chunks.push(vec![number]);
            return true;
        };
        chunk.insert(position.at, number);
        if chunk.len() > CHUNK {
            let upper = chunk.split_off(CHUNK / 2);
            self.chunks.insert(position.chunk + 1, upper);
        }
        true
    }

    /// Removes a number, if it is here. `key_of` must still know its key.
    pub(crate) fn remove<'a>(&mut self, number: u32, key_of: impl Fn(u32) -> Option<&'a K>)
    where
        K: 'a,
    {
        if self.chunks.is_empty() {
            return;
        }
        let is_it = |position: &Position| self.chunks[position.chunk][position.at] == number;
        let found = key_of(number).and_then(|key| self.search(key, &key_of)).and_then(Result::ok);
        // A number must not outlive its key, whatever `Ord` does.
        let Some(Position { chunk, at }) = found.filter(is_it).or_else(|| self.scan(number)) else { return };
        self.chunks[chunk].remove(at);
        if self.chunks[chunk].is_empty() {
            self.chunks.remove(chunk);
        }
    }

    /// Looks for a number without comparing keys.
    fn scan(&self, number: u32) -> Option<Position> {
        let at = |chunk: &Vec<u32>| chunk.iter().position(|other| *other == number);
        self.chunks.iter().enumerate().find_map(|(chunk, numbers)| Some(Position { chunk, at: at(numbers)? }))
    }

    /// The position of a key: `Ok` if it is here, `Err` if it belongs there; `None` without an order.
    fn search<'a>(&self, key: &K, key_of: impl Fn(u32) -> Option<&'a K>) -> Option<Result<Position, Position>>
    where
        K: 'a,
    {
        let order = self.order?;
        if self.chunks.is_empty() {
            return Some(Err(Position { chunk: 0, at: 0 }));
        }
        let compare = |number: &u32| key_of(*number).map_or(Ordering::Less, |other| order(other, key));
        panics::catch(|| {
            let before = self.chunks.partition_point(|chunk| compare(&chunk[0]) != Ordering::Greater);
            let chunk = before.saturating_sub(1);
            let Some(numbers) = self.chunks.get(chunk) else { return Err(Position { chunk, at: 0 }) };
            match numbers.binary_search_by(compare) {
                Ok(at) => Ok(Position { chunk, at }),
                Err(at) => Err(Position { chunk, at }),
            }
        })
        .ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys by number.
    fn key_of<'a>(keys: &'a [u64]) -> impl Fn(u32) -> Option<&'a u64> {
        move |number| keys.get(number as usize)
    }

    fn filled(keys: &[u64]) -> Crowd<u64> {
        let mut crowd = Crowd::new(Some(Ord::cmp as Order<u64>));
        for (number, key) in (0..).zip(keys) {
            assert_eq!(crowd.find(key, key_of(keys)), None);
            assert!(crowd.insert(number, key, key_of(keys)));
        }
        crowd
    }

    #[test]
    fn keys_are_found_until_they_are_removed() {
        let mut random = fastrand::Rng::with_seed(7);
        let mut keys: Vec<u64> = (0..5_000).collect();
        random.shuffle(&mut keys);
        let mut crowd = filled(&keys);
        assert!(crowd.chunks.len() > 5 && crowd.chunks.iter().all(|chunk| chunk.len() <= CHUNK));
        let mut numbers: Vec<u32> = (0..5_000).collect();
        random.shuffle(&mut numbers);
        for number in numbers {
            let key = &keys[number as usize];
            assert_eq!(crowd.find(key, key_of(&keys)), Some(number));
            crowd.remove(number, key_of(&keys));
            assert_eq!(crowd.find(key, key_of(&keys)), None);
        }
        assert!(crowd.chunks.is_empty());
    }

    #[test]
    fn without_an_order_nothing_is_kept() {
        let mut crowd = Crowd::new(None);
        assert!(!crowd.insert(0, &7, |_| Some(&7)));
        assert_eq!(crowd.find(&7, |_| Some(&7)), None);
    }

    /// An order that panics, and one that contradicts itself, must not leave numbers of removed keys behind.
    #[test]
    fn a_bad_order_leaves_nothing_behind() {
        let panics: Order<u64> = |a, b| if *a == 3 || *b == 3 { panic!("on purpose") } else { a.cmp(b) };
        let lies: Order<u64> = |_, _| Ordering::Less;
        for order in [panics, lies] {
            let keys: Vec<u64> = (0..1_500).collect();
            let mut crowd = filled(&keys);
            crowd.order = Some(order);
            for number in 0..1_500 {
                crowd.remove(number, key_of(&keys));
                assert!(!crowd.chunks.concat().contains(&number), "{number}");
            }
            assert!(crowd.chunks.is_empty());
        }
    }
}
