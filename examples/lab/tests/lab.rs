//! The lab over real connections.

use nexthop_lab::{Lab, Settings};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Below the ports that the system gives out by itself.
const OFFSET: u16 = 10_000;

struct Connection(TcpStream);

impl Connection {
    async fn to(port: u16) -> Self {
        Self(TcpStream::connect(("127.0.0.1", port + OFFSET)).await.unwrap())
    }

    /// Status and body; `None` when the connection was closed instead.
    async fn ask(&mut self, request: &str, headers: &str) -> Option<(u16, String)> {
        self.0
            .write_all(format!("{request} HTTP/1.1\r\nhost: lab\r\n{headers}\r\n").as_bytes())
            .await
            .unwrap();
        let mut text = String::new();
        let mut buffer = [0; 1024];
        loop {
            let n = self.0.read(&mut buffer).await.unwrap();
            if n == 0 {
                return None;
            }
            text.push_str(std::str::from_utf8(&buffer[..n]).unwrap());
            let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
            if body.len() == length.parse::<usize>().unwrap() {
                return Some((head[9..12].parse().unwrap(), body.to_owned()));
            }
        }
    }

    async fn status(&mut self, headers: &str) -> u16 {
        self.ask("GET /", headers).await.unwrap().0
    }
}

#[tokio::test(flavor = "current_thread")]
async fn answers_counts_and_resets() {
    let settings = Settings { offset: OFFSET, refuse: vec![18113] };
    let lab = Lab::start(&settings).await.unwrap();
    assert!(Lab::start(&settings).await.is_err_and(|error| error.to_string().contains("28101")));

    let mut half = Connection::to(18102).await;
    assert_eq!([half.status("").await, half.status("").await, half.status("").await], [200, 500, 200]);
    let mut good = Connection::to(18101).await;
    assert_eq!(good.ask("POST /__lab/reset", "content-length: 0\r\n").await.unwrap().0, 200);
    assert_eq!([half.status("").await, half.status("").await], [200, 500], "the pattern starts again");
    assert_eq!(good.status("x-status: 429\r\n").await, 429);

    let mut provider = Connection::to(18112).await;
    assert_eq!([provider.status("x-fail: 1\r\n").await, provider.status("x-fail: 2\r\n").await], [200, 500]);
    assert_eq!(provider.ask("GET /", "x-close: 1\r\n").await, None);
    let counts = good.ask("GET /__lab/counts", "").await.unwrap().1;
    assert_eq!(counts, r#"{"18101":1,"18102":2,"18111":0,"18112":3,"18113":0}"#);

    assert!(TcpStream::connect(("127.0.0.1", 18113 + OFFSET)).await.is_err(), "this one refuses");
    lab.stop().await;
    assert!(TcpStream::connect(("127.0.0.1", 18101 + OFFSET)).await.is_err());
}
