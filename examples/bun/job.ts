import { connect } from "edgelatch";

const api = process.env.API ?? "http://localhost:3000";
const total = Number(process.env.TOTAL ?? 100);

await connect.fromEnv().lock("invoice:42").run(async (lease) => {
  const response = await fetch(`${api}/invoices/42`, {
    method: "PUT",
    headers: { "fencing-token": `${lease.token}` },
    body: JSON.stringify({ total }),
    signal: lease.signal,
  });
  if (!response.ok) throw new Error(await response.text());
  console.log(`${await response.text()} under token ${lease.token}`);
});
