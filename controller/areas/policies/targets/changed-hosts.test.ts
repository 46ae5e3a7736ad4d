import { pino } from "pino";
import { expect, test } from "vitest";
import { TestClock } from "../../../../test/helpers/time/runtime.ts";
import { TARGET_CHANGED_HOSTS_MAX, TARGET_GATHER_MS } from "../../../../common/limits.ts";
import { ChangedHosts } from "./changed-hosts.ts";

function gathered() {
  const clock = new TestClock();
  const evaluated: (readonly string[] | undefined)[] = [];
  const changed = new ChangedHosts({
    runtime: { clock, log: pino({ level: "silent" }) },
    evaluate: (_tenant, hosts) => Promise.resolve(void evaluated.push(hosts)),
  });
  return { clock, changed, evaluated };
}

test("hosts that change within a moment are evaluated together, each once", async () => {
  const { clock, changed, evaluated } = gathered();
  for (const host of ["a", "b", "a"]) changed.add("matrix", host);
  clock.advance(TARGET_GATHER_MS);
  await changed.settled();
  expect(evaluated).toEqual([["a", "b"]]);
});

test("more hosts than are gathered are evaluated as all hosts", async () => {
  const { changed, evaluated } = gathered();
  for (let at = 0; at <= TARGET_CHANGED_HOSTS_MAX; at++) changed.add("matrix", `h${at}`);
  changed.add("matrix", "one more");
  await changed.settled();
  expect(evaluated).toEqual([undefined]);
});
