/**
 * Creates a certificate for `localhost` and 127.0.0.1 that no runtime trusts, a new one each time.
 */

import { generateKeyPairSync, sign } from "node:crypto";

/** Object identifiers, in DER. */
const [ECDSA_WITH_SHA256, COMMON_NAME, ALTERNATIVE_NAME] = ["06082a8648ce3d040302", "0603550403", "0603551d11"];

/** Returns `{ key, cert }` for a TLS server. */
export function selfSigned() {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "prime256v1" });
  const algorithm = sequence(hex(ECDSA_WITH_SHA256));
  const name = sequence(der(0x31, sequence(hex(COMMON_NAME), der(0x0c, Buffer.from("localhost")))));
  const validity = sequence(...["20200101000000Z", "21200101000000Z"].map((time) => der(0x18, Buffer.from(time))));
  const names = sequence(der(0x82, Buffer.from("localhost")), der(0x87, Buffer.from([127, 0, 0, 1])));
  const extensions = der(0xa3, sequence(sequence(hex(ALTERNATIVE_NAME), der(0x04, names))));
  const version = der(0xa0, der(0x02, Buffer.from([2])));
  const key = publicKey.export({ type: "spki", format: "der" });
  const body = sequence(version, der(0x02, Buffer.from([1])), algorithm, name, validity, name, key, extensions);
  const signature = der(0x03, Buffer.concat([Buffer.from([0]), sign("sha256", body, privateKey)]));
  const lines = sequence(body, algorithm, signature).toString("base64").match(/.{1,64}/g);
  const cert = ["-----BEGIN CERTIFICATE-----", ...lines, "-----END CERTIFICATE-----", ""].join("\n");
  return { key: privateKey.export({ type: "pkcs8", format: "pem" }), cert };
}

const hex = (text) => Buffer.from(text, "hex");
const sequence = (...parts) => der(0x30, Buffer.concat(parts));

/** Returns a DER value of this type, with its length in front. */
function der(type, content) {
  const { length } = content;
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([type, ...size]), content]);
}
