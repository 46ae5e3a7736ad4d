import { spawn } from "node:child_process";
import { once } from "node:events";
import { Installation } from "../../e2e/installation.ts";
import { inTurns, type Bench, type Figure } from "../driver/frame.ts";
import { Calls, succeeding } from "./calls.ts";
import { fillItems, ITEM_CLASS, ITEMS } from "./items.ts";
import { PocketBase } from "./pocketbase.ts";
import { requireWrk, wrkRate, type WrkCall } from "./wrk.ts";

const JSON_HEADERS = { "content-type": "application/json" };
/** One in ten objects is hidden from the user; these are not. */
const ID = "%d1";

/**
 * Calls by wrk, which costs little beside the server: a probe, an empty call and a read of one object, beside bare
 * Fastify that checks its input by a schema and answers the same bytes, and beside PocketBase, which uses all cores.
 */
export const loadBench: Bench = {
  name: "load",
  async run(tell) {
    await requireWrk();
    const odp = await Installation.start({});
    const figures: Figure[] = [];
    const told = (figure: Figure): void => {
      figures.push(figure);
      tell(figure);
    };
    try {
      const user = await fillItems(odp);
      const calls = callsOf(odp.port, { user, administrator: await odp.session() });
      for (const { name, call, goal } of calls) told(await besideFastify(name, call, goal));
      const read = calls.at(-1);
      const peer = read && (await PocketBase.start(1));
      if (read && peer) told(await besidePocketBase(read.call, peer));
      return figures;
    } finally {
      await odp.stop();
    }
  },
};

interface Measured {
  readonly name: string;
  readonly call: WrkCall;
  readonly goal: number;
}

function callsOf(
  port: number,
  sessions: { readonly user: string; readonly administrator: string },
): readonly Measured[] {
  const mql = { mql: `select * from ${ITEM_CLASS} where id = ?`, values: [`item:c${ID}`] };
  return [
    { name: "GET /healthz", call: { port, method: "GET", path: "/healthz" }, goal: 0.55 },
    {
      name: "an empty call, signed in",
      call: { port, method: "GET", path: `/cluster/info?sessionid=${sessions.administrator}` },
      goal: 0.4,
    },
    {
      name: "MQL, one object by its id",
      call: {
        port,
        method: "POST",
        path: `/mxobject/mql?sessionid=${sessions.user}`,
        body: JSON.stringify(mql),
        headers: JSON_HEADERS,
        most: ITEMS / 10 - 1,
      },
      goal: 0.25,
    },
  ];
}

async function besideFastify(name: string, call: WrkCall, goal: number): Promise<Figure> {
  const text = await answerOf(call);
  const bare = await bareFastify(text);
  try {
    const same = { ...call, port: bare.port, path: "/?sessionid=x" };
    const rates = await inTurns(
      () => wrkRate(call),
      () => wrkRate(same),
    );
    return { name, unit: "calls/s", ...rates, againstName: "bare Fastify", kind: "ratio", goal };
  } finally {
    bare.stop();
  }
}

async function besidePocketBase(call: WrkCall, peer: PocketBase): Promise<Figure> {
  try {
    const theirs = { ...peer.reading("%014d1"), most: ITEMS / 10 - 1 };
    const rates = await inTurns(
      () => wrkRate(call),
      () => wrkRate(theirs),
    );
    const name = "one object by its id, a row condition and hidden fields";
    return { name, unit: "calls/s", ...rates, againstName: "PocketBase with all cores", kind: "ratio", goal: 2.5 };
  } finally {
    await peer.stop();
  }
}

/** Text of one answer, and a proof that the call succeeds. */
async function answerOf({ port, method, path, body }: WrkCall): Promise<string> {
  const calls = new Calls({ port, atOnce: 1 });
  try {
    const sent = method === "GET" ? calls.get(path) : calls.json(path, JSON.parse(body?.replace("%d", "1") ?? "null"));
    return (await succeeding(sent)).text;
  } finally {
    calls.close();
  }
}

const BARE = `
const app = require("fastify")();
const text = process.argv[1];
const querystring = { type: "object", properties: { sessionid: { type: "string" } }, required: ["sessionid"] };
const body = { type: "object", properties: { mql: { type: "string" }, values: { type: "array" } }, required: ["mql"] };
const answer = (request, reply) => reply.type("application/json; charset=utf-8").send(text);
app.get("/", { schema: { querystring } }, answer);
app.post("/", { schema: { querystring, body } }, answer);
app.listen({ port: 0, host: "127.0.0.1" }).then(() => process.stdout.write(String(app.server.address().port)));
`;

/** Runs in a process of its own, like the controller. */
async function bareFastify(text: string): Promise<{ readonly port: number; stop(): void }> {
  const child = spawn(process.execPath, ["-e", BARE, text], { stdio: ["ignore", "pipe", "inherit"] });
  const [port] = (await once(child.stdout, "data")) as [Buffer];
  return { port: Number(port.toString()), stop: () => void child.kill() };
}
