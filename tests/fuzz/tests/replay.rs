//! Replays the corpora, and plays random bytes that grow from them, on the stable toolchain.

use nexthop_fuzz_targets::TARGETS;
use nexthop_vectors::Dice;
use std::path::PathBuf;

fn corpus(name: &str) -> Vec<Vec<u8>> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    files.iter().map(|path| std::fs::read(path).expect("a file")).collect()
}

/// A few bytes changed, doubled, cut, or taken over from another input.
fn changed(dice: &mut Dice, all: &[Vec<u8>]) -> Vec<u8> {
    let mut data = all[dice.roll(all.len())].clone();
    for _ in 0..1 + dice.roll(6) {
        let at = dice.roll(data.len() + 1);
        match dice.roll(6) {
            0 => data.truncate(at),
            1 => data.insert(at, dice.roll(256) as u8),
            2 if at < data.len() => data[at] = dice.roll(256) as u8,
            3 if at < data.len() => data[at] ^= 1 << dice.roll(8),
            4 => {
                let piece: Vec<u8> = data[at..].iter().copied().take(1 + dice.roll(32)).collect();
                data.splice(at..at, piece);
            }
            _ => {
                let other = &all[dice.roll(all.len())];
                let from = dice.roll(other.len() + 1);
                data.extend(other[from..].iter().take(64));
            }
        }
    }
    data
}

/// Each target over its corpus, then over inputs that come from it: always the same ones.
#[test]
fn corpora() {
    for (name, target) in TARGETS {
        let all = corpus(name);
        assert!(all.len() >= 10, "the corpus of {name} has {} inputs", all.len());
        for data in &all {
            target(data);
        }
        let mut dice = Dice(0x5DEE_CE66_D1CE_5EED);
        for _ in 0..ROUNDS {
            target(&changed(&mut dice, &all));
        }
    }
}

/// So many changed inputs for each target.
const ROUNDS: usize = 300;

/// Random life cycles against the model, from nothing but dice.
#[test]
fn life_cycles() {
    let mut dice = Dice(0x1234_5678_9ABC_DEF1);
    for _ in 0..800 {
        let length = 20 + dice.roll(300);
        let data: Vec<u8> = (0..length).map(|_| dice.roll(256) as u8).collect();
        nexthop_fuzz_targets::lifecycle(&data);
    }
}
