import { connect } from "edgelatch";

import { once } from "./once.js";

export default {
  async scheduled(controller, env) {
    const due = new Date(controller.scheduledTime);
    const ran = await once(connect.fromEnv(env), "worker-report", due, async (lease) => {
      console.log(`writes the report of ${due.toISOString()} under token ${lease.token}`);
    });
    if (!ran) console.log(`skips ${due.toISOString()}`);
  },
};
