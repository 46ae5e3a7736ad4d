import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { Command } from "../../proto/gen/agent/v1/agent.ts";
import { realClock, seededRandom } from "../../test/helpers/time/clock.ts";
import { prove } from "../../test/helpers/runs/evidence.ts";
import { Commands } from "./commands.ts";
import type { Host } from "../policies/host.ts";
import { Journal } from "./journal.ts";
import { Outbox } from "../outbox/outbox.ts";

let folder: string;
let outbox: Outbox;
let journal: Journal;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "odp-journal-"));
  outbox = await Outbox.open({ folder, clock: realClock, random: seededRandom(1) });
  journal = new Journal(outbox, realClock);
});

afterEach(async () => {
  await outbox.close();
  await rm(folder, { recursive: true, force: true });
});

const command = (id: string, epoch: number): Command => ({
  id,
  epoch,
  deadlineMs: 60_000,
  sentMs: 0,
  traceparent: "",
  body: { $case: "exec", value: { line: "x", environment: {}, depot: "", streamOutput: true, stdin: Buffer.alloc(0) } },
});

/** Commands whose work is noted by their ids. */
function commands() {
  const ran: string[] = [];
  const told: string[] = [];
  const notedWhenTold: boolean[] = [];
  const taken = new Commands({
    host: { log: () => undefined } as unknown as Host,
    journal,
    plugins: [
      {
        kind: "exec",
        run: ({ command: { id } }) => (ran.push(id), Promise.resolve({ state: "ok", code: 0, message: "" })),
      },
    ],
    tell: ({ commandId, state }) => {
      told.push(`${commandId} ${state}`);
      notedWhenTold.push(outbox.mark(`command/${commandId}`) !== undefined);
    },
  });
  return { ran, told, notedWhenTold, taken };
}

it("does not go back to an epoch that passes while a higher one is being written", async () => {
  const [higher, lower] = await Promise.allSettled([journal.obey(6), journal.obey(5)]);
  expect([higher.status, lower.status]).toEqual(["fulfilled", "rejected"]);
  expect(journal.highestEpoch).toBe(6);
  const again = new Journal(outbox, realClock);
  expect(again.highestEpoch).toBe(6);
});

it("begins no command of an epoch that passed before it was written down", async () => {
  const { ran, told, taken } = commands();
  await Promise.all([taken.take(command("old", 5)), journal.obey(6)]);
  await taken.stop();
  expect([ran, told]).toEqual([[], ["old refused"]]);
  expect(journal.has("old")).toBe(false);
});

it("begins a command once that comes twice before it is written down, and accepts neither before", async () => {
  await journal.obey(1);
  const { ran, told, notedWhenTold, taken } = commands();
  await Promise.all([taken.take(command("twice", 1)), taken.take(command("twice", 1))]);
  await taken.stop();
  expect(ran).toEqual(["twice"]);
  expect(told).toEqual(["twice accepted", "twice accepted"]);
  expect(notedWhenTold).toEqual([true, true]);
  prove("agent-command-once", {
    cases: ["two epochs at once", "a command of an epoch that passes", "a command twice at once"],
  });
});
