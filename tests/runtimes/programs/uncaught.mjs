/**
 * Ends with an error of the package that it does not catch; with EXPECTED set to CAUGHT, it prints
 * the error's stack instead.
 */

import { connect } from "edgelatch";

async function chargeInvoice() {
  const locks = connect({ url: process.env.EDGELATCH_TEST_URL, token: "not-the-token-of-the-gateway", requestTimeoutMs: 60_000 });
  await locks.lock("invoice:42").acquire();
}

if (process.env.CAUGHT) console.log(JSON.stringify(await chargeInvoice().catch(({ stack }) => stack)));
else await chargeInvoice();
