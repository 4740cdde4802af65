import { fail } from "@sveltejs/kit";
import { connect, WaitTimeoutError } from "edgelatch";

export const actions = {
  /** Publishes the page; a second editor waits for at most 2 s. */
  default: async ({ platform }) => {
    try {
      const token = await connect.fromEnv(platform.env).lock("publish").run({ waitMs: 2_000 }, (lease) => lease.token);
      return { message: `Published under token ${token}.` };
    } catch (error) {
      if (!(error instanceof WaitTimeoutError)) throw error;
      return fail(503, { message: "Another editor is publishing: try again." });
    }
  },
};
