//! The outer end of the routes to a model: sockets beside the workspace, each with one destination.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpStream, UnixListener, UnixStream};
use tokio::task::{JoinHandle, JoinSet};

use super::bubblewrap::SOCKETS_FOLDER;
use super::model_routes::{ModelRoute, ServerAddress};
use super::{SUBCOMMAND, path_text};
use practicum_agents::agents::Launch;

/// The port of the proxy inside the sandbox, where every port is free.
const PROXY_PORT: u16 = 3128;

/// The most open connections of one trial. No agent needs more.
const MOST_CONNECTIONS: usize = 128;

/// The longest head of a request to the proxy, and the longest time for sending it.
const LONGEST_REQUEST_HEAD: usize = 16 * 1024;
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// The most headers of a request to the proxy.
const MOST_HEADERS: usize = 128;

/// The routes of one trial to its model. Dropping them closes them.
pub struct ModelSockets {
    folder: PathBuf,
    /// The ports inside the sandbox, in the order of their sockets.
    ports: Vec<u16>,
    has_proxy: bool,
    own_program: PathBuf,
    servers: Vec<JoinHandle<()>>,
}

/// Opens a socket for each route, in a new folder.
pub fn open(ways: Vec<ModelRoute>, folder: &Path, ourselves: PathBuf) -> std::io::Result<ModelSockets> {
    std::fs::create_dir(folder)?;
    let mut wires = ModelSockets {
        folder: folder.to_owned(),
        ports: Vec::new(),
        has_proxy: ways.iter().any(|way| matches!(way, ModelRoute::Proxy(_))),
        own_program: ourselves,
        servers: Vec::new(),
    };
    for (index, way) in ways.into_iter().enumerate() {
        let listener = UnixListener::bind(folder.join(index.to_string()))?;
        wires.ports.push(match way {
            ModelRoute::Port(port) => port,
            ModelRoute::Proxy(_) => PROXY_PORT,
        });
        wires.servers.push(tokio::spawn(serve(listener, way)));
    }
    Ok(wires)
}

impl ModelSockets {
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Wraps a launch so that this program runs the inner ends of the routes beside it.
    pub fn wrap(&self, launch: Launch) -> Launch {
        if self.ports.is_empty() {
            return launch;
        }
        let mut args = vec![SUBCOMMAND.to_owned()];
        for (index, port) in self.ports.iter().enumerate() {
            args.extend(["--forward".to_owned(), format!("{port}={SOCKETS_FOLDER}/{index}")]);
        }
        args.extend(["--".to_owned(), path_text(&launch.program)]);
        args.extend(launch.args);
        let mut env = launch.env;
        let proxy = format!("http://127.0.0.1:{PROXY_PORT}");
        let proxies =
            ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"].map(|name| (name, proxy.as_str()));
        let direct = ["NO_PROXY", "no_proxy"].map(|name| (name, "127.0.0.1,localhost,::1"));
        for (name, value) in proxies.into_iter().chain(direct).filter(|_| self.has_proxy) {
            env.insert(name.to_owned(), value.to_owned());
        }
        Launch { program: self.own_program.clone(), args, env, ..launch }
    }
}

impl Drop for ModelSockets {
    fn drop(&mut self) {
        for server in &self.servers {
            server.abort();
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

async fn serve(listener: UnixListener, way: ModelRoute) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if connections.len() < MOST_CONNECTIONS => match accepted {
                Ok((stream, _)) => {
                    let way = way.clone();
                    connections.spawn(async move { forward_connection(stream, &way).await });
                }
                // Most likely no file descriptor is free; some will be soon.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            },
            _ = connections.join_next(), if !connections.is_empty() => {}
        }
    }
}

/// Forwards one connection until it ends. The caller may ignore an error, because both ends notice it themselves.
async fn forward_connection(mut inner: UnixStream, way: &ModelRoute) -> std::io::Result<()> {
    let mut outer = match way {
        ModelRoute::Port(port) => connect_loopback(*port).await?,
        ModelRoute::Proxy(hosts) => match connect_allowed_host(&mut inner, hosts).await? {
            Some(outer) => outer,
            None => return Ok(()),
        },
    };
    let _ = outer.set_nodelay(true);
    copy_bidirectional(&mut inner, &mut outer).await.map(|_| ())
}

/// Connects to a server of this machine, which may listen on either loopback address.
async fn connect_loopback(port: u16) -> std::io::Result<TcpStream> {
    match TcpStream::connect(("127.0.0.1", port)).await {
        Ok(stream) => Ok(stream),
        Err(_) => TcpStream::connect(("::1", port)).await,
    }
}

/// Reads a request to the proxy and connects, if the server is an allowed one.
async fn connect_allowed_host(
    inner: &mut UnixStream,
    hosts: &[ServerAddress],
) -> std::io::Result<Option<TcpStream>> {
    let head = match tokio::time::timeout(HEAD_TIMEOUT, read_head(inner)).await {
        Ok(head) => head?,
        Err(_) => return Ok(None),
    };
    let Some(asked) = parse_proxy_request(&head) else {
        inner.write_all(b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n").await?;
        return Ok(None);
    };
    let Some(host) = hosts.iter().find(|host| **host == asked.host) else {
        inner
            .write_all(b"HTTP/1.1 403 Forbidden\r\nconnection: close\r\n\r\nonly the model can be reached\n")
            .await?;
        return Ok(None);
    };
    let connected = TcpStream::connect((host.name.trim_matches(['[', ']']), host.port)).await;
    let Ok(mut outer) = connected else {
        inner.write_all(b"HTTP/1.1 502 Bad Gateway\r\nconnection: close\r\n\r\n").await?;
        return Ok(None);
    };
    match asked.head {
        None => inner.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?,
        Some(head) => outer.write_all(&head).await?,
    }
    Ok(Some(outer))
}

/// Reads up to the empty line and no byte further, because the rest belongs to the server.
async fn read_head(stream: &mut UnixStream) -> std::io::Result<Vec<u8>> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() >= LONGEST_REQUEST_HEAD {
            return Err(std::io::ErrorKind::InvalidData.into());
        }
        head.push(stream.read_u8().await?);
    }
    Ok(head)
}

/// A request to the proxy.
struct ProxyRequest {
    host: ServerAddress,
    /// The head to send to the server; `None` for a tunnel.
    head: Option<Vec<u8>>,
}

/// Reads the head of a request: `CONNECT host:port`, or a request whose target is a whole URL.
fn parse_proxy_request(head: &[u8]) -> Option<ProxyRequest> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    request.parse(head).ok().filter(httparse::Status::is_complete)?;
    let (method, target) = (request.method?, request.path?);
    let tunnel = method == "CONNECT";
    let (authority, default) = match tunnel {
        true => (target, None),
        false => (target.strip_prefix("http://")?.split(['/', '?']).next()?, Some(80)),
    };
    let (name, port) = match authority.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => (name, port.parse().ok()?),
        Some(_) | None => (authority, default?),
    };
    Some(ProxyRequest {
        host: ServerAddress { name: name.to_ascii_lowercase(), port },
        head: (!tunnel).then(|| server_head(method, target, request.headers)),
    })
}

/// Writes the head of a request in the form that servers expect, because not all servers understand proxy requests.
/// Only the first request of a connection is rewritten, so each connection has only one.
fn server_head(method: &str, target: &str, headers: &[httparse::Header<'_>]) -> Vec<u8> {
    let path =
        target.strip_prefix("http://").and_then(|rest| rest.find('/').map(|at| &rest[at..])).unwrap_or("/");
    let mut out = format!("{method} {path} HTTP/1.1\r\n").into_bytes();
    let of_the_connection = |name: &str| {
        ["connection", "proxy-connection", "keep-alive"].iter().any(|one| one.eq_ignore_ascii_case(name))
    };
    for header in headers.iter().filter(|header| !of_the_connection(header.name)) {
        out.extend([header.name.as_bytes(), b": ", header.value, b"\r\n"].concat());
    }
    out.extend_from_slice(b"connection: close\r\n\r\n");
    out
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    /// Sends a text to the proxy and gives the answer.
    async fn say(socket: &Path, text: &str) -> String {
        let mut stream = UnixStream::connect(socket).await.expect("a proxy");
        stream.write_all(text.as_bytes()).await.expect("received");
        stream.shutdown().await.expect("all said");
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        String::from_utf8_lossy(&answer).into_owned()
    }

    #[tokio::test]
    async fn the_proxy_leads_to_the_model_and_nowhere_else() {
        let server = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = server.local_addr().expect("bound").port();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = server.accept().await {
                let mut received = Vec::new();
                let _ = stream.read_to_end(&mut received).await;
                let _ = stream
                    .write_all(format!("received {}", String::from_utf8_lossy(&received)).as_bytes())
                    .await;
            }
        });
        let folder = tempfile::tempdir().expect("a folder");
        let at = folder.path().join("wires");
        let host = ServerAddress { name: "127.0.0.1".to_owned(), port };
        let wires = open(vec![ModelRoute::Proxy(vec![host]), ModelRoute::Port(port)], &at, PathBuf::new())
            .expect("open");
        let ok = "HTTP/1.1 200 Connection established\r\n\r\n";
        let get =
            format!("GET http://127.0.0.1:{port}/x HTTP/1.1\r\na: b\r\nConnection: keep-alive\r\n\r\nbody");
        let got = "received GET /x HTTP/1.1\r\na: b\r\nconnection: close\r\n\r\nbody";
        for (asked, expected) in [
            (
                format!("CONNECT 127.0.0.1:{port} HTTP/1.1\r\nhost: x\r\n\r\nhello"),
                format!("{ok}received hello"),
            ),
            (get, got.to_owned()),
            ("CONNECT 127.0.0.1:1 HTTP/1.1\r\n\r\n".to_owned(), "HTTP/1.1 403".to_owned()),
            (format!("CONNECT example.com:{port} HTTP/1.1\r\n\r\n"), "HTTP/1.1 403".to_owned()),
            (format!("CONNECT 127.0.0.1.example.com:{port} HTTP/1.1\r\n\r\n"), "HTTP/1.1 403".to_owned()),
            (format!("GET http://x@127.0.0.1:{port}/ HTTP/1.1\r\n\r\n"), "HTTP/1.1 403".to_owned()),
            ("GET http://example.com/ HTTP/1.1\r\n\r\n".to_owned(), "HTTP/1.1 403".to_owned()),
            ("GET /x HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n".to_owned(), "HTTP/1.1 400".to_owned()),
            ("CONNECT 127.0.0.1 HTTP/1.1\r\n\r\n".to_owned(), "HTTP/1.1 400".to_owned()),
            ("\u{1}\u{2}\r\n\r\n".to_owned(), "HTTP/1.1 400".to_owned()),
            // A head that servers read in different ways goes to none.
            (format!("GET http://127.0.0.1:{port}/x\r\n\r\n"), "HTTP/1.1 400".to_owned()),
            (format!("GET http://127.0.0.1:{port}/x HTTP/1.1\r\na b: c\r\n\r\n"), "HTTP/1.1 400".to_owned()),
            (
                format!("GET http://127.0.0.1:{port}/x HTTP/1.1\r\na: b\r\n c\r\n\r\n"),
                "HTTP/1.1 400".to_owned(),
            ),
            (
                format!(
                    "GET http://127.0.0.1:{port}/x HTTP/1.1\r\n{}\r\n",
                    "a: b\r\n".repeat(MOST_HEADERS + 1)
                ),
                "HTTP/1.1 400".to_owned(),
            ),
            (
                format!("POST http://127.0.0.1:{port} HTTP/1.1\r\nPROXY-Connection:x\r\nk:  é \r\n\r\n"),
                "received POST / HTTP/1.1\r\nk: é\r\nconnection: close\r\n\r\n".to_owned(),
            ),
            ("x".repeat(2 * LONGEST_REQUEST_HEAD), String::new()),
        ] {
            let answer = say(&at.join("0"), &asked).await;
            assert!(answer.starts_with(&expected), "{asked:?}: {answer:?}");
        }
        assert_eq!(say(&at.join("1"), "plain").await, "received plain");
        drop(wires);
        assert!(!at.exists() && UnixStream::connect(at.join("1")).await.is_err());
    }
}
