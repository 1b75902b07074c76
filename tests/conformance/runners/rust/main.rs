//! The player over nexthop's id-level functions: script on standard input, trace on standard output.

mod face;
mod player;

use std::io::{BufWriter, Write, stdin, stdout};

fn main() -> std::io::Result<()> {
    let mut player = player::Player::new(BufWriter::new(stdout().lock()));
    for line in stdin().lines() {
        let words = nexthop_conformance::script::words(&line?).map_err(std::io::Error::other)?;
        player.command(&words)?;
    }
    player.out.flush()
}
