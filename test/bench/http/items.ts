import type { Installation } from "../../e2e/installation.ts";
import { Calls, succeeding } from "./calls.ts";

/**
 * Objects that a program reads and writes one by one: a class of eight columns with two indexes, and a user who may not
 * see all of it.
 */

export const ITEM_CLASS = "/matrix/bench/item";
export const ITEMS = 10_000;
/** Number of objects with one value of the indexed field. */
const PER_GROUP = 100;
const USER = { company: "matrix", username: "clerk", password: "correct horse battery" };
const FILLED_AT_ONCE = 500;

export interface Item {
  readonly code: string;
  readonly grp: string;
  readonly owner: string;
  readonly label: string;
  readonly note: string;
  readonly amount: number;
  readonly cost: string;
  readonly margin: string;
}

export function item(n: number): Item {
  return {
    code: `c${n}`,
    grp: groupOf(n),
    owner: n % 10 === 0 ? "other" : `owner-${n % 7}`,
    label: `item number ${n}`,
    note: "a note of some forty characters, no more",
    amount: n % 1_000,
    cost: `cost ${n}`,
    margin: `margin ${n}`,
  };
}

export function groupOf(n: number): string {
  return `g${Math.floor(n / PER_GROUP)}`;
}

/** Maps `n` to an object that the user may see; one in ten is hidden. */
export function visibleItem(n: number): number {
  const at = n % ITEMS;
  return at % 10 === 0 ? at + 1 : at;
}

/**
 * Fills the class and creates the user in three nested groups, with one row condition and two hidden fields. Returns
 * the user's session.
 */
export async function fillItems(odp: Installation): Promise<string> {
  await odp.mql(
    `create class ${ITEM_CLASS} (code varchar, grp varchar, owner varchar, label varchar, note varchar, amount int, cost varchar, margin varchar, keys(code), index(grp, amount))`,
  );
  const calls = new Calls({ port: odp.port, atOnce: 1 });
  const mql = `insert into ${ITEM_CLASS} (${Object.keys(item(0)).join(", ")}) values (?, ?, ?, ?, ?, ?, ?, ?)`;
  for (let from = 0; from < ITEMS; from += FILLED_AT_ONCE) {
    const values = Array.from({ length: FILLED_AT_ONCE }, (_, at) => Object.values(item(from + at)) as unknown[]);
    await succeeding(calls.json(`/mxobject/mql?sessionid=${await odp.session()}`, { mql, values }));
  }
  calls.close();
  await createUser(odp);
  const response = await fetch(`${odp.url}/user/signin`, { method: "POST", body: new URLSearchParams(USER) });
  return String(((await response.json()) as { message: unknown }).message);
}

/** Creates three nested groups, of which the outermost opens the class. */
async function createUser(odp: Installation): Promise<void> {
  const { username, password } = USER;
  const user = { parent: "/", username, passwd: password, otype: "usr", isadmin: false, isactive: true };
  await odp.ok("POST", "/admin/users/new", JSON.stringify(user));
  const group = (content: object): Promise<unknown> => odp.ok("POST", "/admin/perms/group", JSON.stringify(content));
  await group({ name: "north", member: [`U/${username}`] });
  await group({ name: "sales", member: ["G/north"] });
  const rules = { readexps: ["/matrix/bench: owner != 'other'"], fields: { "/matrix/bench": "-cost,-margin" } };
  await group({ name: "staff", member: ["G/sales"], writable: ["/matrix/bench"], ...rules });
}
