import { readdirSync, readFileSync } from "node:fs";
import { appendFile, cp, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { OUTBOX_MAX_BYTES } from "../../common/limits.ts";
import { FakeController } from "../../test/helpers/hosts/fake-controller.ts";
import { realClock, seededRandom } from "../../test/helpers/time/clock.ts";
import { runAgent } from "../agent.ts";

/**
 * Golden cases of the plugins. `policy.json` is what a controller sends (`$CASE` is the case's folder), `expected.txt`
 * the records that must come, in order of their files; with `append.txt` its content is appended to the file named in
 * its first line after the first records.
 */
const CASES = ["command-policy", "log-policy"].flatMap((plugin) => {
  const folder = join(import.meta.dirname, plugin, "testcases");
  return readdirSync(folder).map((name) => ({ name: `${plugin}: ${name}`, folder: join(folder, name) }));
});

describe("golden cases", () => {
  // Together, as they wait for pauses of their logs.
  it.concurrent.each(CASES)("$name", async ({ folder }) => {
    const work = await mkdtemp(join(tmpdir(), "odp-case-"));
    await cp(folder, join(work, "case"), { recursive: true });
    const controller = await FakeController.start();
    const end = new AbortController();
    const done = start(controller, work, end.signal);
    try {
      await follow(controller, work, folder);
    } finally {
      end.abort();
      await done;
      await controller.stop();
      await rm(work, { recursive: true, force: true });
    }
  });
});

/** The whole agent. */
function start(controller: FakeController, work: string, signal: AbortSignal): Promise<unknown> {
  const world = {
    clock: realClock,
    random: seededRandom(1),
    log: () => undefined,
    environment: { PATH: process.env.PATH },
    version: "test",
  };
  const config = {
    controller: controller.url,
    token: controller.joinToken,
    isNamed: false,
    enrolsAgain: true,
    name: "h",
    folder: join(work, "agent"),
    outboxMaxBytes: OUTBOX_MAX_BYTES,
    isTunnelOpen: () => false,
  };
  return runAgent(config, world, signal);
}

async function follow(controller: FakeController, work: string, folder: string): Promise<void> {
  const spec = readFileSync(join(folder, "policy.json"), "utf8").replaceAll("$CASE", join(work, "case"));
  controller.want({ revision: 1, policies: [{ name: "case", revision: 1, spec, depot: undefined }] });
  const expected = readFileSync(join(folder, "expected.txt"), "utf8")
    .split("\n---\n")
    .map((text) => text.replace(/\n$/, ""));
  await appendWhenSeen(controller, join(work, "case"), folder);
  await controller.until("all records", () => controller.records().length >= expected.length);
  const entries = [...controller.bodies("records")].sort((a, b) =>
    a.source < b.source ? -1 : a.source > b.source ? 1 : 0,
  );
  const records = entries.flatMap((entry) =>
    entry.records.map((record) => `${groupsOf(entry.groups)}${record.toString()}`),
  );
  expect(records.slice(0, expected.length)).toEqual(expected);
}

function groupsOf(groups: Readonly<Record<string, string>>): string {
  const names = Object.keys(groups).sort();
  return names.length === 0 ? "" : `[${names.map((name) => `${name}=${groups[name]}`).join(" ")}] `;
}

async function appendWhenSeen(controller: FakeController, work: string, folder: string): Promise<void> {
  if (!readdirSync(folder).includes("append.txt")) return;
  await controller.until("first records", () => controller.records().length > 0);
  const [file = "", ...lines] = readFileSync(join(folder, "append.txt"), "utf8").split("\n");
  await appendFile(join(work, file), lines.join("\n"));
  await writeFile(join(work, "appended"), "");
}
