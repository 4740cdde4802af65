/**
 * Measures how long one call, and one portion of a pipeline, block Redis, and how much processor
 * time the gateway takes for the longest requests, with `tests/bench/blocks.rs`.
 */

import { withEnv } from "./env.mjs";
import { table } from "./figures.mjs";

/** The bars in milliseconds: for one call, for one portion, and for the gateway's processor. */
const [CALL, PORTION, REQUEST] = [5, 20, 10];
const COLUMNS = ["edgelatch", "the bar"];
/** Above the rates of the measurement, which are not its subject. */
const RATES = ["--client-commands", "1000000000", "--client-requests", "1000000000"];

export function measureBlocks({ blockRounds: rounds }) {
  console.log("→ measuring: blocks of Redis, processor time of the gateway");
  const measure = async (env) => {
    const { scripts, portions, requests } = await env.rust("blocks", { rounds });
    const ofBar = (found, bar) => found.map(([name, ms]) => [name, "ms", [ms, bar]]);
    const calls =
      "the longest call of each script, in every state of its object up to the limits, and with as many arguments as a call may have; " +
      `the least of ${rounds} runs, since other load only adds, by \`INFO commandstats\``;
    const pipelines =
      "a pipeline of 40 of these calls, each on an object of its own; another client sends one `PING` after the other; the least of " +
      `${rounds} runs, each with its longest wait`;
    const processor = `the least of ${rounds} runs, since other load only adds, by the process' own statistics`;
    return [
      table("blocks-scripts", "Redis' time for one call", calls, COLUMNS, ofBar(scripts, CALL)),
      table("blocks-portions", "The longest wait of another client during a pipeline", pipelines, COLUMNS, ofBar(portions, PORTION)),
      table("gateway-processor", "The gateway's processor time for the longest requests", processor, COLUMNS, ofBar(requests, REQUEST)),
    ];
  };
  return withEnv({ java: [] }, measure, RATES);
}
