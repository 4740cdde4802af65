import { connect, EdgelatchError, type Lease } from "@edgelatch/edgelatch";
import { logTo } from "@edgelatch/edgelatch/log";
import Redlock from "@edgelatch/edgelatch/redlock";
import { init } from "@edgelatch/edgelatch/slim";
import { Lock } from "@edgelatch/edgelatch/upstash-lock";

const locks = connect({ url: Deno.env.get("EDGELATCH_URL")!, token: Deno.env.get("EDGELATCH_TOKEN") });
await using lease: Lease = await locks.lock(`jsr:${crypto.randomUUID()}`).acquire();
if ([Redlock, init, Lock, EdgelatchError, logTo].some((value) => typeof value !== "function")) throw new Error("an export is missing");
console.log(await lease.release());
