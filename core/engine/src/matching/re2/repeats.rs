//! RE2's bounds on repetition.

use super::{Fault, MAX_REPEAT};

/// How often things are repeated, one inside the other: RE2 goes as far as a thousand times.
#[derive(Default)]
pub(super) struct Repeats {
    /// Of each open group, the most that anything in it is repeated.
    open: Vec<u32>,
    /// The same outside of all groups.
    most: u32,
    /// How often what stands last repeats what is inside it; 0 = nothing stands there.
    last: u32,
    /// What stands last is repeated already.
    pub(super) repeated: bool,
}

impl Repeats {
    fn most(&mut self) -> &mut u32 {
        self.open.last_mut().unwrap_or(&mut self.most)
    }

    /// Something that can be repeated.
    pub(super) fn one(&mut self, inside: u32) {
        (self.last, self.repeated) = (inside.max(1), false);
        let most = self.most();
        *most = (*most).max(inside);
    }

    /// Something that stands alone.
    pub(super) fn apart(&mut self) {
        (self.last, self.repeated) = (0, false);
    }

    pub(super) fn open(&mut self) {
        self.open.push(1);
        self.apart();
    }

    pub(super) fn close(&mut self) -> Result<(), Fault> {
        let inside = self.open.pop().ok_or("unexpected )")?;
        self.one(inside);
        Ok(())
    }

    /// A repetition; `range` of a counter, whose end may be open.
    pub(super) fn again(&mut self, range: Option<(u32, Option<u32>)>) -> Result<(), Fault> {
        if self.last == 0 {
            return Err("no argument for repetition operator");
        }
        if self.repeated {
            return Err("bad repetition operator");
        }
        if let Some((low, high)) = range {
            let times = self.last.saturating_mul(high.unwrap_or(low).max(1));
            if times > MAX_REPEAT && (low >= 2 || high.is_some_and(|high| high >= 2)) {
                return Err("invalid repetition size");
            }
            self.one(times);
        }
        self.repeated = true;
        Ok(())
    }

    pub(super) fn end(&self) -> Result<(), Fault> {
        if self.open.is_empty() { Ok(()) } else { Err("missing )") }
    }
}
