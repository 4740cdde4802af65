/**
 * Addresses without TLS, and whether each is on loopback, where a token may travel unencrypted. The
 * same list tests the Rust client: `tests/integration/options.rs` reads this array as JSON.
 */
export const PLAIN_ADDRESSES = [
  ["http://localhost", true],
  ["http://LocalHost:8079", true],
  ["http://a.b.localhost/redis", true],
  ["http://127.0.0.1:8079", true],
  ["http://127.255.3.4/", true],
  ["http://127.000.0.01", true],
  ["http://[::1]:8079/redis", true],
  ["http://127.evil.example", false],
  ["http://127.0.0.evil.example", false],
  ["http://127.0.0.1.evil.example", false],
  ["http://127.0.0.x", false],
  ["http://127.1", false],
  ["http://127.0.0.0.1", false],
  ["http://127.0.0.256", false],
  ["http://0127.0.0.1", false],
  ["http://127.000000.0.1", false],
  ["http://0x7f.0.0.1", false],
  ["http://2130706433", false],
  ["http://127-0-0-1.evil.example", false],
  ["http://localhost.evil.example", false],
  ["http://notlocalhost", false],
  ["http://[::2]", false],
  ["http://[0:0:0:0:0:0:0:1]:8079", false],
  ["http://0.0.0.0", false],
  ["http://gateway.internal:8079/redis", false]
];
