'use strict';
// Timers of an engine: the event loop's, or, with a manual clock, those that `advance` runs.

const LONGEST = 2147483647;

class RealClock {
  /** Runs `action` in so many milliseconds; a timer with `idle` does not keep the process alive. */
  after(ms, action, idle = false) {
    const timer = setTimeout(action, Math.min(Math.ceil(ms), LONGEST));
    if (idle) timer.unref();
    return timer;
  }
  cancel(timer) {
    clearTimeout(timer);
  }
  advanced() {}
}

class ManualClock {
  #now;
  #timers = new Set();
  constructor(now) {
    this.#now = now;
  }
  after(ms, action) {
    const timer = { at: this.#now() + ms, action };
    this.#timers.add(timer);
    return timer;
  }
  cancel(timer) {
    this.#timers.delete(timer);
  }
  /** The engine's clock has moved: runs what is due, earliest first. */
  advanced() {
    const now = this.#now();
    const due = [...this.#timers].filter((timer) => timer.at <= now).sort((a, b) => a.at - b.at);
    for (const timer of due) {
      this.#timers.delete(timer);
      timer.action();
    }
  }
}

module.exports = { RealClock, ManualClock };
