/** Starts two processes with the same schedule; in production they are on two machines. */
import { fork } from "node:child_process";

for (let i = 0; i < 2; i++) fork("cron.mjs");
