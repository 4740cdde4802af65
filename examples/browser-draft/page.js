import { connect } from "edgelatch";

const [edit, done] = document.querySelectorAll("button");
const area = document.querySelector("textarea");
const say = (text) => (document.querySelector("output").textContent = text);

edit.onclick = async () => {
  edit.disabled = true;
  say("Waiting: another person is editing.");
  const { url, token, name } = await (await fetch("/lock-token", { method: "POST" })).json();
  const leaving = new AbortController();
  addEventListener("pagehide", () => leaving.abort(), { once: true });
  const lease = await connect({ url, token }).lock(name).acquire({ waitMs: "until-aborted", signal: leaving.signal });
  await editUnder(lease);
  edit.disabled = false;
};

area.value = await (await fetch("/draft")).text();
edit.disabled = false;

/** Lets the user edit until Done is clicked or the lease is lost. */
async function editUnder(lease) {
  area.value = await (await fetch("/draft")).text();
  say("You are editing.");
  area.disabled = done.disabled = false;
  let saving = Promise.resolve();
  area.oninput = () => (saving = saving.then(() => save(lease)));
  await new Promise((resolve) => {
    done.onclick = lease.signal.onabort = resolve;
  });
  area.disabled = done.disabled = true;
  await saving;
  const outcome = await lease.release();
  say(outcome === "released" ? "Saved." : "The lease was lost: the last words may not be saved.");
}

async function save(lease) {
  const headers = { "fencing-token": `${lease.token}` };
  try {
    const { ok } = await fetch("/draft", { method: "PUT", headers, body: area.value, signal: lease.signal });
    if (!ok) say("Another person has saved a newer text.");
  } catch {
    say("The text could not be saved.");
  }
}
