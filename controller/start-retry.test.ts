import { pino } from "pino";
import { expect, test } from "vitest";
import { AppError } from "../common/errors.ts";
import { START_AGAIN_MS, START_PATIENCE_MS } from "../common/limits.ts";
import { TestClock, testRuntime } from "../test/helpers/time/runtime.ts";
import { StartRetry } from "./start-retry.ts";
import { storeDamaged } from "./store/damage.ts";

function open() {
  const clock = new TestClock();
  const said: string[] = [];
  const log = pino({ level: "warn" }, { write: (line: string) => void said.push(JSON.parse(line).reason) });
  return { clock, said, patience: new StartRetry({ ...testRuntime(clock), log }) };
}

const away = (): Promise<never> => Promise.reject(new AppError("unavailable", "Cassandra does not answer"));

test("a start waits for stores that are away, and says for what", async () => {
  const { clock, said, patience } = open();
  let attempts = 0;
  const step = patience.during(async () => (++attempts < 3 ? away() : "begun"));
  for (const attempt of [1, 2]) {
    await expect.poll(() => said).toHaveLength(attempt);
    clock.advance(START_AGAIN_MS);
  }
  expect(await step).toBe("begun");
  expect(said).toEqual(["Cassandra does not answer", "Cassandra does not answer"]);
});

test("all steps of a start have one patience, and what it waited for is in the error", async () => {
  const { clock, said, patience } = open();
  await patience.during(async () => clock.advance(START_PATIENCE_MS - 1));
  const step = patience.during(away);
  await expect.poll(() => said).toHaveLength(1);
  clock.advance(START_AGAIN_MS);
  await expect(step).rejects.toMatchObject({
    code: "unavailable",
    message: expect.stringMatching(/waited 60 s .*Cassandra does not answer/),
  });
});

test.each([new AppError("invalid", "no prefix"), storeDamaged("the first page is none")])(
  "what no wait mends ends the start at once: %s",
  async (error) => {
    const { patience, said } = open();
    await expect(patience.during(() => Promise.reject(error))).rejects.toBe(error);
    expect(said).toEqual([]);
  },
);
