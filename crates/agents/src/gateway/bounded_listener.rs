//! A listener that accepts only so many connections at once.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A listener that waits with the next connection until one of the others is closed, if there are too many.
pub struct BoundedListener {
    inner: TcpListener,
    free: Arc<Semaphore>,
}

/// A connection of a [`BoundedListener`].
pub struct BoundedStream {
    inner: TcpStream,
    _permit: Option<OwnedSemaphorePermit>,
}

impl BoundedListener {
    /// Accepts at most so many connections at once.
    pub fn new(inner: TcpListener, most: usize) -> Self {
        Self { inner, free: Arc::new(Semaphore::new(most)) }
    }
}

impl Listener for BoundedListener {
    type Io = BoundedStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        // The semaphore is never closed.
        let permit = Arc::clone(&self.free).acquire_owned().await.ok();
        let (inner, address) = Listener::accept(&mut self.inner).await;
        (BoundedStream { inner, _permit: permit }, address)
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.inner.local_addr()
    }
}

impl BoundedStream {
    /// Sends small parts at once.
    pub fn set_nodelay(&self) -> io::Result<()> {
        self.inner.set_nodelay(true)
    }
}

impl AsyncRead for BoundedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

impl AsyncWrite for BoundedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test]
    async fn a_connection_too_many_waits_until_another_is_closed() {
        let inner = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let mut listener = BoundedListener::new(inner, 2);
        let address = listener.local_addr().expect("bound");
        let mut clients = Vec::new();
        for _ in 0..3 {
            clients.push(TcpStream::connect(address).await.expect("the system queues it"));
        }
        let (first, _) = listener.accept().await;
        let (_second, _) = listener.accept().await;
        let third = tokio::time::timeout(Duration::from_millis(100), listener.accept()).await;
        assert!(third.is_err(), "two are open");
        drop(first);
        let third = tokio::time::timeout(Duration::from_secs(30), listener.accept()).await;
        assert!(third.is_ok(), "one was closed");
    }
}
