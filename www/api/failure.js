/** Converts errors to responses for the client. */

import { EdgelatchError } from "edgelatch";

import { BadInputError } from "./input.js";
import { RedisError } from "./redis.js";
import { NoKeyError } from "./token.js";
import { NoOutageError } from "./outage.js";
import { MissingContenderError } from "./checker.js";

/** Returns the HTTP status, a stable code and a readable message. */
export function describe(error) {
  if (error instanceof BadInputError) return { status: 400, code: "bad-input", message: error.message };
  if (error instanceof RedisError) return { status: 502, code: "redis", message: error.message };
  if (error instanceof NoKeyError) return { status: 501, code: "no-key", message: error.message };
  if (error instanceof NoOutageError) return { status: 501, code: "no-outage", message: error.message };
  if (error instanceof MissingContenderError) return { status: 409, code: "missing-contender", message: error.message };
  if (error instanceof EdgelatchError) {
    const status = { "wait-timeout": 409, "invalid-option": 500 }[error.code] ?? 502;
    return { status, code: error.code, message: error.message };
  }
  // Any other error is a fault of this Worker: its text goes to the log and not to the client.
  console.error(error);
  return { status: 500, code: "internal", message: "The Worker failed." };
}
