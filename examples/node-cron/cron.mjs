import { Cron } from "croner";
import { connect } from "edgelatch";

import { once } from "./once.mjs";

const locks = connect.fromEnv();

new Cron(process.env.SCHEDULE ?? "*/5 * * * * *", { catch: (error) => console.error(error) }, async (schedule) => {
  const [due] = schedule.previousRuns(1);
  const ran = await once(locks, "nightly-report", due, async (lease) => {
    console.log(`${process.pid} writes the report of ${due.toISOString()} under token ${lease.token}`);
  });
  if (!ran) console.log(`${process.pid} skips ${due.toISOString()}`);
});
