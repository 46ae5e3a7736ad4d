import { expect, test } from "vitest";
import { prove } from "../helpers/runs/evidence.ts";
import { TIMES } from "../helpers/time/times.ts";
import { cutOff, effectsOnce, HotWrites, manyRows, prepareEffects } from "./effects.ts";
import { carryOut, everythingOnce, kills, prepare, putRule } from "./exactly-once.ts";
import { Installation } from "./installation.ts";

const SEED = Number(process.env["ODP_TEST_SEED"] ?? 4);
/** `npm run soak` makes many more. */
const WRITES = 200 * TIMES;
const ROWS = 40 * TIMES;
const LINES = 3_000 * TIMES;

test("what triggers and the body of a rule do to objects is there once, through kill -9, also in the middle of an import and of a batch, and many writes of one object", async () => {
  await using odp = await started();
  await prepareEffects(odp.is);
  await prepare(odp.is, "^access\\.log$");
  await putRule(odp.is, "access", "/matrix/once/access", BODY);
  const others = await manyRows(odp.is, ROWS);
  const hot = new HotWrites([odp.is], WRITES);
  await hot.half;
  await carryOut({
    odp: odp.is,
    seed: SEED,
    lines: LINES,
    pauseMs: 40,
    linesPerBurst: 200,
    rotateEveryLines: 2_000,
    rotations: ["rename"],
    blows: [...kills(odp.is, 1), cutOff(odp.is)],
  });
  await hot.end();
  const writes = await effectsOnce(odp.is, WRITES, others);
  const told = await everythingOnce(odp.is, LINES);
  expect(await odp.is.mql("select count(*) from /matrix/once/twice")).toMatchObject([{ count: LINES }]);
  prove("scripted-effects", { engine: "embedded", writes, rows: ROWS, lines: LINES, ...told, kills: 2, seed: SEED });
});

/** Each record creates a row of another class in addition to its own. */
const BODY = `setvar("path", getvar("path"))
setvar("n", getvar("n"))
setClass("/matrix/once/twice")
setvar("n", getvar("n"))
`;

async function started() {
  const is = await Installation.start({ ODP_STORE: "embedded" });
  await is.mql("create class /matrix/once/twice (n bigint) with kind='record'");
  return { is, [Symbol.asyncDispose]: () => is.stop() };
}
