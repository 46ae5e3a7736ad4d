import { AppcontextService } from "../../../controller/areas/appcontext/index.ts";
import { compileWhere, parseWhere } from "../../../common/where/index.ts";
import { realClock } from "../../helpers/time/clock.ts";
import { openTestEngine } from "../../helpers/engines/engine.ts";
import { testPrincipal, testRuntime } from "../../helpers/time/runtime.ts";
import { median, perSecond, type Bench, type Figure } from "../driver/frame.ts";

const ITEMS = 10_000;
const ROUNDS = 21;
const AT_ONCE = 100;
const WHERE = "(os = 'linux' || os ~= '^aix') && size * 2 >= 1900 && tags contains 'red' && name != 'host-7'";
const GOAL_MS = 20;
const STOP_GOAL_MS = 5;
const principal = testPrincipal();

/** Conditions on the items of a collection on embedded, alone and in queries of a program. */
export const contextBench: Bench = {
  name: "context",
  async run() {
    await using engine = await openTestEngine();
    const appcontext = new AppcontextService({ stores: engine, runtime: testRuntime(realClock) });
    await perSecond(ITEMS, AT_ONCE, (n) =>
      appcontext.put(principal, { collection: "items", id: `${n}`, text: JSON.stringify(item(n)) }),
    );
    const query = { collection: "items", where: WHERE };
    const list = async (): Promise<number> => {
      let count = 0;
      for await (const page of appcontext.list(principal, query)) count += page.length;
      return count;
    };
    const alone = await medianMs(() => Promise.resolve(conditionAlone()));
    const whole = await medianMs(list);
    const stop = await longestStopMs(list);
    const told = `${await list()} of ${ITEMS} items`;
    return [
      most(`parse the texts and find ${told} by a condition`, alone, GOAL_MS),
      most(`the same out of the store`, whole, GOAL_MS),
      most(`the event loop stands still meanwhile`, stop, STOP_GOAL_MS),
    ];
  },
};

function item(n: number): object {
  const tags = n % 2 === 0 ? ["red", "green"] : ["blue"];
  return {
    name: `host-${n}`,
    os: n % 3 === 0 ? "linux" : "windows",
    size: n % 1_000,
    tags,
    note: "some forty characters of text, no more",
  };
}

const TEXTS = Array.from({ length: ITEMS }, (_, n) => JSON.stringify(item(n)));

function conditionAlone(): number {
  const condition = compileWhere(parseWhere(WHERE));
  return TEXTS.filter((text) => condition(JSON.parse(text) as string)).length;
}

async function medianMs(work: () => Promise<unknown>): Promise<number> {
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const before = workedMs();
    await work();
    times.push(workedMs() - before);
  }
  return median(times.slice(1));
}

/** Longest processor time in ms between two turns of the event loop, the median of all rounds. */
async function longestStopMs(work: () => Promise<unknown>): Promise<number> {
  const stops: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    let longest = 0;
    let isOver = false;
    let last = workedMs();
    const look = (): void => {
      const now = workedMs();
      longest = Math.max(longest, now - last);
      last = now;
      if (!isOver) setImmediate(look);
    };
    setImmediate(look);
    await work();
    isOver = true;
    stops.push(longest);
  }
  return median(stops);
}

/** Processor time of this process in ms, without the time in which it waits for a processor. */
function workedMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

function most(name: string, ours: number, goal: number): Figure {
  return { name, unit: "ms", ours, against: goal, againstName: "the goal", kind: "most", goal: 1 };
}
