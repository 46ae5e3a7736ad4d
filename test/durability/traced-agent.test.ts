import { createHash } from "node:crypto";
import { mkdtemp, readFile, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Journal } from "../../agent/commands/journal.ts";
import { Outbox } from "../../agent/outbox/outbox.ts";
import type { AgentFrame, Depot } from "../../proto/gen/agent/v1/agent.ts";
import { realClock, seededRandom } from "../helpers/time/clock.ts";
import { prove } from "../helpers/runs/evidence.ts";
import { FakeController } from "../helpers/hosts/fake-controller.ts";
import type { ForgetfulFiles } from "../helpers/engines/forgetful-files.ts";
import { diskAfter } from "../tools/crash/images.ts";
import { canTrace, readTrace, startTraced, type Timed } from "../tools/crash/strace.ts";

const COMMANDS = 20;
const DISKS_PER_MOMENT = 2;
/** The controller's clock shows whole milliseconds. */
const CLOCK_GRAIN_MS = 1;
/** Small size limit; it makes no difference to what is read. */
const SMALL_BYTES = 64 * 1024;
const seed = Number(process.env.ODP_TEST_SEED ?? Date.now() % 1_000_000_000);
const AGENT = join(import.meta.dirname, "../../agent/main.ts");

/** A report of the agent to its controller, and when the controller received it. */
interface ReportedEntry {
  readonly atMs: number;
  readonly accepted?: string;
  readonly sequence?: number;
  readonly deployed?: boolean;
}

/** Loading the sources takes the longer the more its tracer has to wait for a processor. */
const START_DEADLINE_MS = 240_000;

/** Files larger than the sectors of the disk that can be lost. */
const DEPOT_FILES = { "bin/check": "#!/bin/sh\n".padEnd(3_000, "#"), "lib/data": "d".repeat(2_000) };

let top = "";
let folder: string;
let events: readonly Timed[];
const told: ReportedEntry[] = [];

beforeAll(async () => {
  if (!canTrace()) return;
  top = await realpath(await mkdtemp(join(tmpdir(), "odp-traced-")));
  folder = join(top, "agent");
  const controller = await FakeController.start();
  controller.heard = note;
  const command = [
    process.execPath,
    "--import",
    "tsx",
    AGENT,
    "--controller",
    controller.url,
    "--token",
    controller.joinToken,
    "--dir",
    folder,
    "--name",
    "web-1",
  ];
  const traced = startTraced({ command, file: join(top, "trace"), output: join(top, "said") });
  try {
    await controller.until("a session", () => controller.hellos.length > 0, START_DEADLINE_MS);
    for (let n = 1; n <= COMMANDS; n++) {
      controller.command({
        id: `c${n}`,
        body: {
          $case: "exec",
          value: { line: "echo done", environment: {}, depot: "", streamOutput: true, stdin: Buffer.alloc(0) },
        },
      });
      if (n % 4 === 0) await controller.until("results", () => controller.bodies("result").length === n);
    }
    controller.command({ id: "deploy", body: { $case: "deploy", value: depot(controller) } });
    await controller.until("deployment", () => controller.bodies("result").length === COMMANDS + 1);
  } finally {
    // An agent that did not start has no such file; then its tracer ends, and the error above is told.
    const file = await readFile(join(folder, "agent.pid"), "utf8").catch(() => String(traced.pid));
    process.kill(Number(file.split(" ")[0]), "SIGKILL");
    await traced.ended;
    await controller.stop();
  }
  events = await readTrace(join(top, "trace"), folder);
}, 300_000);

afterAll(() => rm(top, { recursive: true, force: true }));

function note(frame: AgentFrame["frame"]): void {
  const atMs = Date.now() + CLOCK_GRAIN_MS;
  if (frame?.$case === "command" && frame.value.state === "accepted")
    told.push({ atMs, accepted: frame.value.commandId });
  if (frame?.$case !== "batch") return;
  const deployed = frame.value.entries.some(
    ({ body }) => body?.$case === "result" && body.value.commandId === "deploy" && body.value.state === "ok",
  );
  told.push({ atMs, sequence: frame.value.entries.at(-1)?.sequence ?? 0, deployed });
}

function depot(controller: FakeController): Depot {
  const files = Object.entries(DEPOT_FILES).map(([path, text]) => {
    const digest = createHash("sha256").update(text).digest("hex");
    controller.contents.set(digest, Buffer.from(text));
    return { path, digest, size: text.length, executable: path.startsWith("bin/") };
  });
  return { name: "tools", version: "1", files, command: "", remotePath: "", environment: {} };
}

function placed(disk: ForgetfulFiles): Record<string, string> {
  const found = [...disk.contents()].flatMap(([path, bytes]) => {
    const [, name] = /\/depots\/tools\/1-\w+\/(.+)$/.exec(path) ?? [];
    return name === undefined || name.startsWith(".") ? [] : [[name, bytes.toString()]];
  });
  return Object.fromEntries(found) as Record<string, string>;
}

test.runIf(canTrace())(
  "whatever the agent has told its controller is on its disk, should the power go at that moment",
  { timeout: 300_000 },
  async () => {
    console.log(`traced agent: seed ${seed}`);
    expect(told.filter(({ accepted }) => accepted !== undefined)).toHaveLength(COMMANDS + 1);
    expect(told.some(({ deployed }) => deployed)).toBe(true);
    let disks = 0;
    for (const { atMs, accepted, sequence = 0, deployed } of told) {
      const happened = events.filter((event) => event.atMs <= atMs);
      for (let n = 0; n < DISKS_PER_MOMENT; n++) {
        const disk = await diskAfter(happened, folder, seed + ++disks);
        const outbox = await Outbox.open({
          folder: join(folder, "outbox"),
          files: disk.boot(),
          clock: realClock,
          random: seededRandom(seed),
          maxBytes: SMALL_BYTES,
        });
        expect(
          accepted === undefined || new Journal(outbox, realClock).has(accepted),
          `${accepted} is in the journal`,
        ).toBe(true);
        expect(outbox.nextSequence, "the entry that was sent is there").toBeGreaterThan(sequence);
        if (deployed) expect(placed(disk), "the depot").toEqual(DEPOT_FILES);
        await outbox.close();
      }
    }
    prove("agent-power-cut", {
      part: "outbox and journal of a traced process",
      moments: told.length,
      images: disks,
      seed,
      calls: events.length,
    });
  },
);
