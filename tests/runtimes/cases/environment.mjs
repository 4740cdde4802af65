/** Clients from environment variables. */

import { ok, rejection, same, throws } from "../check.mjs";

export const environment = {
  async "fromEnv reads the variables of Upstash and of Vercel"(world) {
    const { url, token } = world;
    const environments = [
      [{ UPSTASH_REDIS_REST_URL: url, UPSTASH_REDIS_REST_TOKEN: token }],
      [{ KV_REST_API_URL: url, KV_REST_API_TOKEN: token }],
      [{ UPSTASH_REDIS_REST_URL: ` ${url}/\n`, UPSTASH_REDIS_REST_TOKEN: `\t${token}\r\n` }],
      [{ UPSTASH_REDIS_REST_URL: "  ", KV_REST_API_URL: url, UPSTASH_REDIS_REST_TOKEN: "", KV_REST_API_TOKEN: token }],
      [{ UPSTASH_REDIS_REST_URL: url, UPSTASH_REDIS_REST_TOKEN: token, KV_REST_API_URL: "x", KV_REST_API_TOKEN: "y z" }],
      [{ MY_KV_REST_API_URL: url, MY_KV_REST_API_TOKEN: token, KV_REST_API_URL: "x" }, { prefix: "MY_" }],
      [Object.create({ KV_REST_API_URL: url, KV_REST_API_TOKEN: token }), { prefix: "" }],
      [{ KV_REST_API_URL: url, KV_REST_API_TOKEN: token }, { requestTimeoutMs: 60_000, fetch: (...call) => fetch(...call) }],
    ];
    for (const [env, options] of environments) {
      same((await world.connect.fromEnv(env, options).lock(world.name()).inspect()).locked, false);
    }
  },

  "fromEnv reports a missing variable or an invalid argument by its name"(world) {
    const { url, token, connect, InvalidOptionError } = world;
    const [URL, TOKEN] = ["UPSTASH_REDIS_REST_URL", "UPSTASH_REDIS_REST_TOKEN"];
    const missing = [
      [{}, undefined, URL],
      [{ [URL]: url }, undefined, TOKEN],
      [{ [TOKEN]: token }, undefined, URL],
      [{ [URL]: url, [TOKEN]: token }, { prefix: "P_" }, `P_${URL}`],
      [{ [URL]: 5, [TOKEN]: token }, undefined, URL],
      [{ [URL]: url, [TOKEN]: { get: () => token } }, undefined, TOKEN],
      [{ [URL]: url, [TOKEN]: token }, { prefix: 5 }, "prefix"],
      [{ [URL]: url, [TOKEN]: token }, { requestTimeoutMs: 1 }, "requestTimeoutMs"],
      [{ [URL]: url, [TOKEN]: token }, 5, "options"],
      [null, undefined, "env"],
      ["text", undefined, "env"],
    ];
    for (const [env, options, option] of missing) {
      const error = throws(() => connect.fromEnv(env, options), InvalidOptionError, { option });
      ok(error.message.includes(option) && error.message.includes(error.accepted), error.message);
      same(error.message.includes("is not set"), option.includes("UPSTASH"), error.message);
    }
  },

  "fromEnv reports an invalid value by the name of its variable"(world) {
    const { url, token, connect, InvalidOptionError } = world;
    const [URL, TOKEN] = ["UPSTASH_REDIS_REST_URL", "UPSTASH_REDIS_REST_TOKEN"];
    for (const [env, options, option, advice] of [
      [{ [URL]: "nowhere", [TOKEN]: token }, undefined, URL, "begins with https://"],
      [{ KV_REST_API_URL: "rediss://x.upstash.io:6379", [TOKEN]: token }, undefined, "KV_REST_API_URL", "edgelatch-gateway"],
      [{ [URL]: "http://gateway.internal", [TOKEN]: token }, undefined, URL, "allowHttp"],
      [{ [URL]: url, [TOKEN]: "two words" }, undefined, TOKEN, "REST token"],
      [{ [`P_${URL}`]: url, P_KV_REST_API_TOKEN: '"t"' }, { prefix: "P_" }, "P_KV_REST_API_TOKEN", "quotes"],
    ]) {
      const error = throws(() => connect.fromEnv(env, options), InvalidOptionError, { option });
      ok(error.message.includes(option) && error.message.includes(advice), error.message);
    }
  },

  async "fromEnv without an argument reads process.env"(world) {
    const { connect, InvalidOptionError } = world;
    const error = await rejection((async () => connect.fromEnv())());
    ok(error instanceof InvalidOptionError, "nothing is set where the tests run");
    const { env } = globalThis.process ?? {};
    same(error.option, env ? "UPSTASH_REDIS_REST_URL" : "env");
    if (!env) return;
    env.UPSTASH_REDIS_REST_URL = world.url;
    env.UPSTASH_REDIS_REST_TOKEN = world.token;
    try {
      same((await connect.fromEnv().lock(world.name()).inspect()).locked, false);
    } finally {
      delete env.UPSTASH_REDIS_REST_URL;
      delete env.UPSTASH_REDIS_REST_TOKEN;
    }
  },
};
