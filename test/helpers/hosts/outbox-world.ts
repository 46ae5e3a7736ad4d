import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach } from "vitest";
import { realClock, seededRandom } from "../time/clock.ts";
import { Outbox, type Emission, type OutboxOptions } from "../../../agent/outbox/outbox.ts";

/** Outboxes in a folder of the running test. */

/** Folder of the outboxes of the running test. */
export let folder: string;
let opened: Outbox[];

/** Makes a folder for each test of the calling file, and closes its outboxes after it. */
export function useOutboxes(): void {
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "odp-outbox-"));
    opened = [];
  });
  afterEach(async () => {
    for (const outbox of opened) await outbox.close();
    await rm(folder, { recursive: true, force: true });
  });
}

/** Opens the outbox of the folder; each time with random numbers of its own. */
export async function openOutbox(options: Partial<OutboxOptions> = {}): Promise<Outbox> {
  const outbox = await Outbox.open({ folder, clock: realClock, random: seededRandom(opened.length + 1), ...options });
  opened.push(outbox);
  return outbox;
}

/** An entry of command output with this text. */
export function text(data: string): Emission {
  return { body: { $case: "output", value: { commandId: "c", stderr: false, offset: 0, data: Buffer.from(data) } } };
}

/** Returns the text of an entry of `text`; of any other entry, its kind. */
export function textOf(body: unknown): string {
  const output = body as Emission["body"];
  return output.$case === "output" ? output.value.data.toString() : output.$case;
}

/** Reads the texts of all entries from this sequence number on. */
export async function texts(outbox: Outbox, from: number): Promise<string[]> {
  const reader = outbox.reader(from);
  const all: string[] = [];
  for (let entries = await reader.next(7, 1_000); entries.length > 0; entries = await reader.next(7, 1_000)) {
    all.push(...entries.map(({ body }) => textOf(body)));
  }
  await reader.close();
  return all;
}

/** Returns the names of the files of entries. */
export async function segments(): Promise<string[]> {
  return (await readdir(folder)).filter((name) => name.endsWith(".seg"));
}
