//! The inner end of the routes to a model: ports inside a sandbox without network.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, UnixStream};
use tokio::process::Command;

/// A port inside the sandbox, and the socket that it leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortForward {
    pub port: u16,
    pub socket: PathBuf,
}

impl std::str::FromStr for PortForward {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (port, socket) = text.split_once('=').ok_or("it must be PORT=SOCKET")?;
        Ok(Self { port: port.parse().map_err(|_| "it must be PORT=SOCKET")?, socket: socket.into() })
    }
}

/// Runs a command, and forwards the ports as long as it runs. Gives its exit code as a shell would.
pub async fn forward_while(command: &[String], forwards: &[PortForward]) -> std::io::Result<u8> {
    for PortForward { port, socket } in forwards {
        tokio::spawn(serve(TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).await?, socket.clone()));
        // A machine without IPv6 does not need this listener.
        if let Ok(listener) = TcpListener::bind((IpAddr::V6(Ipv6Addr::LOCALHOST), *port)).await {
            tokio::spawn(serve(listener, socket.clone()));
        }
    }
    let (program, args) = command.split_first().ok_or(std::io::ErrorKind::InvalidInput)?;
    // Whoever asks all processes to end also asks the command, which may still need the ports for a moment.
    let mut asked_to_end = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tokio::spawn(async move { while asked_to_end.recv().await.is_some() {} });
    let status = Command::new(program).args(args).spawn()?.wait().await?;
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    Ok(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

async fn serve(listener: TcpListener, socket: PathBuf) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let socket = socket.clone();
                tokio::spawn(async move { forward_connection(stream, &socket).await });
            }
            Err(_) => tokio::time::sleep(std::time::Duration::from_millis(50)).await,
        }
    }
}

async fn forward_connection(mut near: tokio::net::TcpStream, socket: &Path) -> std::io::Result<()> {
    let _ = near.set_nodelay(true);
    let mut far = UnixStream::connect(socket).await?;
    copy_bidirectional(&mut near, &mut far).await.map(|_| ())
}
