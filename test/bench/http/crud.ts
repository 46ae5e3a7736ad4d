import { Installation } from "../../e2e/installation.ts";
import { Calls, succeeding } from "./calls.ts";
import { inTurns, perSecond, type Bench, type Figure } from "../driver/frame.ts";
import { fillItems, groupOf, item, ITEM_CLASS, ITEMS, visibleItem } from "./items.ts";
import { PocketBase } from "./pocketbase.ts";
import { anonymousMb } from "../driver/process.ts";

const CALLS = 2_000;
const AT_ONCE = 32;
const PEER_GOAL = 2;

interface Operation {
  readonly name: string;
  /** Smallest fraction of the rate of a route that does nothing. */
  readonly goal: number;
  readonly ours: (n: number) => Promise<unknown>;
  readonly theirs: (peer: PocketBase, n: number) => Promise<unknown>;
}

/**
 * One object at a time over HTTP, as a user with a row condition and two hidden fields, beside a route that does
 * nothing and beside PocketBase.
 */
export const crudBench: Bench = {
  name: "crud",
  async run() {
    const odp = await Installation.start({});
    const calls = new Calls({ port: odp.port, atOnce: AT_ONCE });
    let peer: PocketBase | undefined;
    try {
      const session = await fillItems(odp);
      peer = await PocketBase.start(AT_ONCE);
      const administrator = await odp.session();
      const nothing = (): Promise<unknown> => succeeding(calls.get(`/cluster/info?sessionid=${administrator}`));
      const figures: Figure[] = [];
      for (const operation of operations(calls, session)) figures.push(...(await measure(operation, nothing, peer)));
      console.log(`  anonymous memory of the controller: ${Math.round(anonymousMb(odp.controller.pid))} MB`);
      return figures;
    } finally {
      calls.close();
      await peer?.stop();
      await odp.stop();
    }
  },
};

export function operations(calls: Calls, session: string): readonly Operation[] {
  const mql = (text: string, values: readonly unknown[]): Promise<unknown> =>
    succeeding(calls.json(`/mxobject/mql?sessionid=${session}`, { mql: text, values }));
  const columns = Object.keys(item(0)).filter((name) => name !== "cost" && name !== "margin");
  const insert = `insert into ${ITEM_CLASS} (${columns.join(", ")}) values (${columns.map(() => "?").join(", ")})`;
  let made = ITEMS;
  return [
    {
      name: "get by id",
      goal: 0.7,
      ours: (n) => mql(`select * from ${ITEM_CLASS} where id = ?`, [`item:c${visibleItem(n)}`]),
      theirs: (peer, n) => peer.get(n),
    },
    {
      name: `list 20 of ${ITEMS} by an indexed field`,
      goal: 0.4,
      ours: (n) => mql(`select * from ${ITEM_CLASS} where grp = ? limit 20`, [groupOf(n % ITEMS)]),
      theirs: (peer, n) => peer.list(n),
    },
    {
      name: "insert with two indexes, durable",
      goal: 0.3,
      ours: () => {
        const next = new Map(Object.entries({ ...item(made++), owner: "mine" }));
        return mql(
          insert,
          columns.map((name) => next.get(name)),
        );
      },
      theirs: (peer) => peer.insert(),
    },
  ];
}

async function measure(
  operation: Operation,
  nothing: () => Promise<unknown>,
  peer: PocketBase | undefined,
): Promise<readonly Figure[]> {
  const { name, goal, ours, theirs } = operation;
  const rate =
    (call: (n: number) => Promise<unknown>): (() => Promise<number>) =>
    () =>
      perSecond(CALLS, AT_ONCE, (n) => call(n * 37));
  const beside = { ...(await inTurns(rate(ours), rate(nothing))), againstName: "an empty authenticated route", goal };
  const common = { name, unit: "calls/s", kind: "ratio" } as const;
  if (peer === undefined) return [{ ...common, ...beside }];
  const rivals = {
    ...(await inTurns(
      rate(ours),
      rate((n) => theirs(peer, n)),
    )),
    againstName: "PocketBase with rules",
    goal: PEER_GOAL,
  };
  return [
    { ...common, ...beside },
    { ...common, ...rivals },
  ];
}
