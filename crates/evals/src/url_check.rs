//! Requests web addresses for checks that may use the network.
//!
//! In: an address. Out: whether it answers. Never: connects to an address that is not public, not even through a
//! redirect or a host name.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use reqwest::header::LOCATION;
use reqwest::redirect::Policy;
use reqwest::{Client, Method, StatusCode, Url};
use tokio::runtime::{Handle, RuntimeFlavor};

use crate::checks::is_public;
use practicum_core::model::UrlChecker;

/// The time limit for one address, with all its redirects.
const URL_TIMEOUT: Duration = Duration::from_secs(5);

const MOST_REDIRECTS: usize = 5;

/// A checker that requests addresses over HTTP.
pub struct HttpUrlChecker {
    runtime: Handle,
    may_connect: fn(IpAddr) -> bool,
}

impl HttpUrlChecker {
    /// Makes a checker that sends its requests on a runtime.
    pub fn with_runtime(runtime: Handle) -> Self {
        Self { runtime, may_connect: is_public }
    }

    async fn follow_url(&self, url: &str) -> Result<(), String> {
        let mut url = Url::parse(url).map_err(|error| error.to_string())?;
        for _ in 0..=MOST_REDIRECTS {
            let client = self.client_for(&url).await?;
            let mut answer = send_request(&client, Method::HEAD, &url).await?;
            // Some servers do not support HEAD, so the whole page is requested.
            if matches!(answer.status(), StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_IMPLEMENTED) {
                answer = send_request(&client, Method::GET, &url).await?;
            }
            if !answer.status().is_redirection() {
                let status = answer.status();
                return if status.is_success() { Ok(()) } else { Err(format!("it answers {status}")) };
            }
            let to = answer.headers().get(LOCATION).and_then(|to| to.to_str().ok());
            let to = to.ok_or("it redirects to nowhere")?;
            url = url.join(to).map_err(|error| error.to_string())?;
        }
        Err("it redirects without end".to_owned())
    }

    /// Makes a client that connects only to the addresses that were checked. Another lookup of the host name could
    /// give a different address.
    async fn client_for(&self, url: &Url) -> Result<Client, String> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!("{} is not the web", url.scheme()));
        }
        let host = url.host_str().ok_or("it names no host")?;
        let port = url.port_or_known_default().ok_or("it names no port")?;
        let name = host.trim_matches(['[', ']']);
        let found = tokio::net::lookup_host((name, port)).await.map_err(|_| "its host is not known")?;
        let addresses: Vec<SocketAddr> = found.collect();
        if addresses.is_empty() || !addresses.iter().all(|address| (self.may_connect)(address.ip())) {
            return Err("it is not public".to_owned());
        }
        Client::builder()
            .redirect(Policy::none())
            .no_proxy()
            .resolve_to_addrs(host, &addresses)
            .build()
            .map_err(|error| error.to_string())
    }
}

async fn send_request(client: &Client, method: Method, url: &Url) -> Result<reqwest::Response, String> {
    client.request(method, url.clone()).send().await.map_err(|_| "it does not answer".to_owned())
}

impl UrlChecker for HttpUrlChecker {
    fn check_url(&self, url: &str) -> Result<(), String> {
        let late = |_| format!("no answer within {} s", URL_TIMEOUT.as_secs());
        let follow = async { tokio::time::timeout(URL_TIMEOUT, self.follow_url(url)).await.map_err(late)? };
        if self.runtime.runtime_flavor() == RuntimeFlavor::MultiThread {
            return self.runtime.block_on(follow);
        }
        // The only thread of the runtime is the one that waits here, so another thread makes the request.
        std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                runtime.map_err(|error| error.to_string())?.block_on(follow)
            });
            other.join().unwrap_or_else(|_| Err("it could not be followed".to_owned()))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;

    use super::*;

    /// Starts a server that answers each request by its method and path, and then closes the connection.
    fn server() -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut lines = BufReader::new(&stream).lines();
                let first = lines.next().and_then(Result::ok).unwrap_or_default();
                let headers = lines.map_while(Result::ok);
                headers.take_while(|line| !line.is_empty()).for_each(drop);
                let status = match first.rsplit_once(' ').map_or("", |(asked, _)| asked) {
                    "HEAD /fine" | "GET /whole" => "200 OK".to_owned(),
                    "HEAD /whole" => "405 Method Not Allowed".to_owned(),
                    "HEAD /moved" => "302 Found\r\nLocation: /fine".to_owned(),
                    "HEAD /round" => "302 Found\r\nLocation: /round".to_owned(),
                    "HEAD /inside" => "302 Found\r\nLocation: http://169.254.169.254/secrets".to_owned(),
                    "HEAD /file" => "302 Found\r\nLocation: file:///etc/passwd".to_owned(),
                    _ => "404 Not Found".to_owned(),
                };
                let _ =
                    write!(&stream, "HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            }
        });
        port
    }

    #[test]
    fn what_answers_is_reached_and_nothing_inside_is_asked() {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let loopback = |address: IpAddr| address.is_loopback();
        let web = HttpUrlChecker { runtime: runtime.handle().clone(), may_connect: loopback };
        let port = server();
        for (path, expected) in [
            ("fine", Ok(())),
            ("whole", Ok(())),
            ("moved", Ok(())),
            ("gone", Err("it answers 404 Not Found")),
            ("round", Err("it redirects without end")),
            ("inside", Err("it is not public")),
            ("file", Err("file is not the web")),
        ] {
            let found = web.check_url(&format!("http://127.0.0.1:{port}/{path}"));
            assert_eq!(found, expected.map_err(str::to_owned), "{path}");
        }
        let strict = HttpUrlChecker { runtime: runtime.handle().clone(), may_connect: is_public };
        assert_eq!(
            strict.check_url(&format!("http://127.0.0.1:{port}/fine")),
            Err("it is not public".to_owned())
        );
        assert_eq!(strict.check_url("http://[::1]/"), Err("it is not public".to_owned()));
    }
}
