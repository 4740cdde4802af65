/**
 * The SQL of `docs/fencing.md`, as it stands there, on SQLite.
 *
 * Run by a Node that has `node:sqlite`.
 */

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { DatabaseSync } from "node:sqlite";
import { beforeEach, describe, test } from "node:test";

const page = await readFile(new URL("../../docs/fencing.md", import.meta.url), "utf8");

/** The statements of the page by the names in their first lines. */
const recipes = new Map(
  [...page.matchAll(/^```sql\n-- (.+)\n([^`]+)^```$/gm)].map(([, name, sql]) => [name, sql]),
);

let database;
beforeEach(() => {
  database = new DatabaseSync(":memory:");
  for (const name of ["table", "numbered table", "fences"]) database.exec(recipe(name));
});

function recipe(name) {
  assert.ok(recipes.has(name), `the page has no statement named ${name}`);
  return recipes.get(name);
}

/** Runs a statement of the page; returns the number of rows that it changed. */
function run(name, values) {
  const statement = database.prepare(recipe(name));
  return Number(statement.run(Object.fromEntries(Object.entries(values).map(([key, value]) => [`:${key}`, value]))).changes);
}

const row = (table, id) => ({ ...database.prepare(`SELECT * FROM ${table} WHERE id = ?`).get(id) });

/** Two tokens in the order of their grants. */
const OLD = 1_700_000_000_000_000;
const NEW = OLD + 1;

test("every statement of the page is tested", () => {
  const tested = ["table", "update", "upsert", "claim", "numbered table", "numbered update", "fences", "raise", "fenced delete"];
  assert.deepEqual([...recipes.keys()], tested);
});

describe("one write for each lease", () => {
  test("a newer token writes over an older one, and not the other way round", () => {
    assert.equal(run("upsert", { id: "42", total: 1, token: OLD }), 1);
    assert.equal(run("update", { id: "42", total: 2, token: NEW }), 1);
    assert.equal(run("update", { id: "42", total: 3, token: OLD }), 0);
    assert.equal(run("upsert", { id: "42", total: 3, token: OLD }), 0);
    assert.deepEqual(row("invoice", "42"), { id: "42", total: 2, fence: NEW });
  });

  test("the same write twice leaves what one leaves", () => {
    for (let time = 0; time < 2; time++) {
      assert.equal(run("upsert", { id: "42", total: 1, token: OLD }), 1);
    }
    assert.deepEqual(row("invoice", "42"), { id: "42", total: 1, fence: OLD });
  });

  test("a row that is not there is not updated", () => {
    assert.equal(run("update", { id: "42", total: 1, token: OLD }), 0);
  });

  test("a claim keeps the value and rejects older tokens", () => {
    run("upsert", { id: "42", total: 1, token: OLD });
    assert.equal(run("claim", { id: "42", token: NEW }), 1);
    assert.equal(run("update", { id: "42", total: 9, token: OLD }), 0);
    assert.deepEqual(row("invoice", "42"), { id: "42", total: 1, fence: NEW });
    assert.equal(run("claim", { id: "42", token: OLD }), 0);
  });

  test("the largest token is kept exactly", () => {
    run("upsert", { id: "42", total: 1, token: Number.MAX_SAFE_INTEGER });
    assert.equal(row("invoice", "42").fence, Number.MAX_SAFE_INTEGER);
    assert.equal(run("update", { id: "42", total: 2, token: Number.MAX_SAFE_INTEGER - 1 }), 0);
  });
});

describe("several writes of one lease", () => {
  beforeEach(() => database.exec("INSERT INTO account (id, balance) VALUES ('a', 0)"));
  const write = (token, step, balance) => run("numbered update", { id: "a", balance, token, step });

  test("each is done once, and a late copy does not come over a later one", () => {
    assert.deepEqual([write(OLD, 1, 10), write(OLD, 1, 10), write(OLD, 2, 20), write(OLD, 1, 10)], [1, 0, 1, 0]);
    assert.deepEqual(row("account", "a"), { id: "a", balance: 20, fence: OLD, step: 2 });
  });

  test("a newer lease begins its numbers anew", () => {
    assert.deepEqual([write(OLD, 7, 10), write(NEW, 1, 20), write(OLD, 8, 30)], [1, 1, 0]);
    assert.deepEqual(row("account", "a"), { id: "a", balance: 20, fence: NEW, step: 1 });
  });
});

describe("fences in a table of their own", () => {
  beforeEach(() => run("upsert", { id: "42", total: 1, token: OLD }));

  /** Both statements in one transaction. */
  function fencedDelete(token) {
    database.exec("BEGIN IMMEDIATE");
    run("raise", { name: "invoice:42", token });
    const changes = run("fenced delete", { id: "42", name: "invoice:42", token });
    database.exec("COMMIT");
    return changes;
  }

  test("a delete is refused once a newer token was seen, and the fence outlives the row", () => {
    run("raise", { name: "invoice:42", token: NEW });
    assert.equal(fencedDelete(OLD), 0);
    assert.equal(fencedDelete(NEW), 1);
    run("upsert", { id: "42", total: 2, token: NEW });
    assert.equal(fencedDelete(OLD), 0);
  });

  test("a fence never falls", () => {
    for (const token of [NEW, OLD, NEW]) run("raise", { name: "x", token });
    assert.equal(database.prepare("SELECT token FROM fence WHERE name = 'x'").get().token, NEW);
  });
});
