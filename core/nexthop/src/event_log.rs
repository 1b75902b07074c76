//! Events on their way to a log: a thread that hands each line to a sink.

use crate::Engine;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// Where lines go.
pub type Sink = Box<dyn FnMut(&str) -> io::Result<()> + Send>;

/// A log of an engine's events, made by [`Engine::log_events`]. It holds the engine until it is closed or dropped, which
/// writes what is there once more.
///
/// Any number of threads may use it. Two logs of one engine share its events: each line goes to one of them.
#[must_use = "a dropped log ends"]
pub struct EventLog {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    engine: Arc<Engine>,
    lines: Mutex<Lines>,
    stop: Mutex<bool>,
    stopped: Condvar,
}

struct Lines {
    sink: Sink,
    /// The sink failed on it: it goes first in the next round.
    kept: Option<String>,
    error: Option<String>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    fn round(&self) -> io::Result<u64> {
        let mut lines = lock(&self.lines);
        let Lines { sink, kept, error } = &mut *lines;
        // Sweeps and the ends of ejections happen here when no request makes them happen.
        self.engine.maintain(self.engine.now());
        let mut written = 0;
        while let Some(line) = kept.take().or_else(|| self.engine.poll_event()) {
            let told = catch_unwind(AssertUnwindSafe(|| sink(&line)));
            if let Err(failure) = told.unwrap_or_else(|_| Err(io::Error::other("the sink panicked"))) {
                *kept = Some(line);
                *error = Some(failure.to_string());
                return Err(failure);
            }
            written += 1;
        }
        *error = None;
        Ok(written)
    }

    fn run(&self, every: Duration) {
        let mut stop = lock(&self.stop);
        while !*stop {
            drop(stop);
            // Told by `error`; the line is kept.
            let _ = self.round();
            stop = lock(&self.stop);
            if !*stop {
                stop = self.stopped.wait_timeout(stop, every).unwrap_or_else(PoisonError::into_inner).0;
            }
        }
    }
}

impl Engine {
    /// Starts a thread that runs due maintenance every so often and hands each event to `sink`: one JSON object without a
    /// line end, those of outlier detection and health checks as Envoy writes them. [`to_writer`] and [`to_file`] are
    /// sinks.
    ///
    /// A line whose sink fails (or panics) is kept and handed over again in the next round; meanwhile the engine keeps as many events
    /// as [`Builder::events`](crate::Builder::events) says, and tells how many were lost.
    ///
    /// # Errors
    /// No thread could be started.
    pub fn log_events(
        self: &Arc<Self>,
        every: Duration,
        sink: impl FnMut(&str) -> io::Result<()> + Send + 'static,
    ) -> io::Result<EventLog> {
        let shared = Arc::new(Shared {
            engine: Arc::clone(self),
            lines: Mutex::new(Lines { sink: Box::new(sink), kept: None, error: None }),
            stop: Mutex::new(false),
            stopped: Condvar::new(),
        });
        let thread = Builder::new().name("nexthop-events".into()).spawn({
            let shared = Arc::clone(&shared);
            move || shared.run(every)
        })?;
        Ok(EventLog { shared, thread: Some(thread) })
    }
}

impl EventLog {
    /// Writes now what there is. How many lines were written.
    ///
    /// # Errors
    /// The sink's; its line is kept.
    pub fn flush(&self) -> io::Result<u64> {
        self.shared.round()
    }

    /// Why the sink failed in the newest round; `None` when it did not.
    pub fn error(&self) -> Option<String> {
        lock(&self.shared.lines).error.clone()
    }

    /// Ends the thread, and writes what is left.
    ///
    /// # Errors
    /// The sink's.
    pub fn close(mut self) -> io::Result<u64> {
        self.stop();
        self.shared.round()
    }

    fn stop(&mut self) -> bool {
        let Some(thread) = self.thread.take() else { return false };
        *lock(&self.shared.stop) = true;
        self.shared.stopped.notify_all();
        let _ = thread.join();
        true
    }
}

impl Drop for EventLog {
    fn drop(&mut self) {
        if self.stop() {
            let _ = self.shared.round();
        }
    }
}

/// A sink that writes lines: to a socket, standard error, a pipe.
pub fn to_writer(mut writer: impl Write + Send) -> impl FnMut(&str) -> io::Result<()> + Send {
    move |line| {
        writer.write_all(format!("{line}\n").as_bytes())?;
        writer.flush()
    }
}

/// A sink that appends lines to a file, made when it is not there. It is opened for each line, so that whoever rotates
/// logs needs to tell nobody.
pub fn to_file(path: impl Into<PathBuf>) -> Sink {
    let path = path.into();
    Box::new(move |line| {
        let mut file = OpenOptions::new().append(true).create(true).open(&path)?;
        // In one piece: other processes may append to the same file.
        file.write_all(format!("{line}\n").as_bytes())
    })
}
