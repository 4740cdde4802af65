//! A gateway with a certificate that the client does not trust.

use std::sync::{Arc, Mutex};

use edgelatch::Gateway;
use edgelatch::client::Client;
use edgelatch::error::{AcquireError, FailureKind};
use edgelatch::host::TokioHost;
use edgelatch::timing::AttemptTime;
use edgelatch::transport::Reqwest;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs::default_provider;
use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;

use test_support::redis::TOKEN;
use test_support::test_env::LONG_ATTEMPT;

/// A TLS server, and the requests that it received after a handshake.
struct Impostor {
    url: String,
    certificate: Vec<u8>,
    received: Arc<Mutex<Vec<String>>>,
    /// The numbers of handshakes that were begun and that were completed.
    handshakes: Arc<Mutex<(u32, u32)>>,
}

impl Impostor {
    /// Starts a server that responds to each request with 503.
    async fn start() -> Self {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let certificate = made.cert.der().to_vec();
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        let config = ServerConfig::builder_with_provider(default_provider().into())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.clone().into()], key.into())
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://localhost:{}", listener.local_addr().unwrap().port());
        let impostor =
            Self { url, certificate, received: Arc::default(), handshakes: Arc::default() };
        let (received, handshakes) = (impostor.received.clone(), impostor.handshakes.clone());
        let acceptor = TlsAcceptor::from(Arc::new(config));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let text = respond(&acceptor, stream, &handshakes).await;
                received.lock().unwrap().extend(text);
            }
        });
        impostor
    }

    fn client(&self, transport: Reqwest) -> Client<Reqwest, TokioHost> {
        let gateway = Gateway::upstash(&self.url, TOKEN).unwrap();
        let attempt = AttemptTime::new(LONG_ATTEMPT).unwrap();
        Client::new(gateway.request_timeout(attempt), transport, TokioHost::new())
    }
}

/// Accepts a connection; returns the request if the handshake succeeds.
async fn respond(
    acceptor: &TlsAcceptor,
    stream: TcpStream,
    handshakes: &Mutex<(u32, u32)>,
) -> Option<String> {
    handshakes.lock().unwrap().0 += 1;
    let mut stream = acceptor.accept(stream).await.ok()?;
    handshakes.lock().unwrap().1 += 1;
    let mut head = [0; 4096];
    let length = stream.read(&mut head).await.ok()?;
    let unavailable =
        b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    stream.write_all(unavailable).await.ok()?;
    stream.shutdown().await.ok()?;
    Some(String::from_utf8_lossy(&head[..length]).into_owned())
}

/// S51.
#[tokio::test]
async fn an_untrusted_certificate_ends_a_connection_before_a_request_is_sent() {
    let impostor = Impostor::start().await;
    let client = impostor.client(Reqwest::new());
    let error = client.lock("job").unwrap().try_acquire().await.unwrap_err();
    // No request left, so there is nothing to undo.
    assert_eq!(error, AcquireError::Unreachable(FailureKind::NotSent));
    let shown = format!("{error} {error:?}");
    assert!(error.to_string().contains("could not be reached"), "{shown}");
    assert!(!shown.contains(TOKEN), "{shown}");
    assert!(error.host().is_some_and(|host| host.starts_with("localhost:")), "{shown}");
    assert!(shown.contains("UnknownIssuer"), "the source says why: {shown}");
    let (begun, completed) = *impostor.handshakes.lock().unwrap();
    assert!(begun > 0 && completed == 0, "{begun} {completed}");

    // A client that trusts the certificate gets through, so the certificate was the reason.
    let certificate = reqwest::Certificate::from_der(&impostor.certificate).unwrap();
    let trusting = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .tls_certs_only([certificate])
        .build()
        .unwrap();
    let client = impostor.client(Reqwest::with_client(trusting));
    let error = client.lock("job").unwrap().try_acquire().await.unwrap_err();
    assert!(matches!(error.kind, AcquireError::Unknown { .. }), "{error:?}");
    assert!(impostor.received.lock().unwrap()[0].contains(TOKEN));
}
