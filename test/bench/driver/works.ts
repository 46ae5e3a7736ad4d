import { appendFile } from "node:fs/promises";
import { join } from "node:path";
import { wait } from "../../../common/time.ts";
import { form, type Installation } from "../../e2e/installation.ts";
import { realClock } from "../../helpers/time/clock.ts";
import { combinedLines, followAccessLog, isThere, markedLine } from "../records/access.ts";
import { Calls, succeeding } from "../http/calls.ts";
import { operations } from "../http/crud.ts";
import { perSecond } from "./frame.ts";
import { fillItems } from "../http/items.ts";
import { HOST_CALLS, TRIGGER, TRIVIAL } from "../objects/scripts.ts";

const AT_ONCE = 32;
const LOOKED_EVERY_MS = 50;

type Rounds = (count: number) => Promise<void>;

/** Work that two versions do in turns, over HTTP or through an agent, because all versions share these protocols. */
export interface Work {
  /** The bench to which the work belongs. */
  readonly bench: string;
  readonly name: string;
  /** Number of operations of the smallest round. */
  readonly atLeast: number;
  /** Host of the agent that does a part of the work. Absent: the controller does all. */
  readonly agent?: string;
  /** Returns the function that makes a given number of operations. */
  prepare(odp: Installation): Promise<Rounds>;
}

export const WORKS: readonly Work[] = [
  {
    bench: "http",
    name: "an empty call, signed in",
    atLeast: 500,
    async prepare(odp) {
      const [calls, session] = [callsOf(odp), await odp.session()];
      return rounds(() => succeeding(calls.get(`/cluster/info?sessionid=${session}`)));
    },
  },
  ...["get by id", "list", "insert"].map((name, at) => ({
    bench: "crud",
    name,
    atLeast: 250,
    async prepare(odp: Installation) {
      const session = await fillItems(odp);
      return rounds(operations(callsOf(odp), session)[at]!.ours);
    },
  })),
  ...Object.entries({ "a trivial script": TRIVIAL, "a script with ten host calls": HOST_CALLS }).map(
    ([name, data]) => ({
      bench: "scripts",
      name,
      atLeast: 25,
      async prepare(odp: Installation) {
        const [calls, session] = [callsOf(odp), await odp.session()];
        await odp.mql("create class /matrix/bench/row (n int, text varchar)");
        const rows = Array.from({ length: 100 }, (_, n) => `insert into /matrix/bench/row n=${n}, text='row ${n}';`);
        await odp.mql(`begin ${rows.join(" ")} end`);
        await odp.ok("PUT", "/fs/script/bench/tried.js", form({ data }));
        return rounds(() => succeeding(calls.get(`/script/exec/js?filepath=/bench/tried.js&sessionid=${session}`)));
      },
    }),
  ),
  {
    bench: "scripts",
    name: "an insert through a trigger before it",
    atLeast: 100,
    async prepare(odp) {
      const [calls, session] = [callsOf(odp), await odp.session()];
      await odp.mql("create class /matrix/bench/triggered (n int, text varchar)");
      const trigger = { class: "/matrix/bench/triggered", name: "count", script: TRIGGER, attr: { before: "true" } };
      await odp.ok("PUT", "/mxobject/trigger", JSON.stringify(trigger));
      const mql = "insert into /matrix/bench/triggered n=1, text='x'";
      return rounds(() => succeeding(calls.form(`/mxobject/mql?sessionid=${session}`, { mql })));
    },
  },
  followed("ingest", "a line of an access log to an object"),
  followed("rules", "the same line, through a body in Lua", 'setvar("verb", string.lower(OBJECT.verb))\n'),
];

function callsOf(odp: Installation): Calls {
  return new Calls({ port: odp.port, atOnce: AT_ONCE });
}

/** Makes operations one after the other on each of `AT_ONCE` connections. `n` continues from round to round. */
function rounds(operation: (n: number) => Promise<unknown>): Rounds {
  let done = 0;
  return async (count) => {
    const from = done;
    done += count;
    await perSecond(count, AT_ONCE, (n) => operation((from + n) * 37));
  };
}

function followed(bench: string, name: string, body = ""): Work {
  return {
    bench,
    name,
    atLeast: 1_000,
    agent: "web-1",
    async prepare(odp) {
      const file = join(await followAccessLog(odp, body), "access.log");
      let from = 0;
      return async (count) => {
        const last = from + count - 1;
        await appendFile(file, combinedLines(from, count - 1) + markedLine(last));
        from = last + 1;
        while (!(await isThere(odp, last))) await wait(realClock, LOOKED_EVERY_MS);
      };
    },
  };
}
