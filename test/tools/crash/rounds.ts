import { spawn, type ChildProcess } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { Environment } from "../../../controller/store/embedded/environment.ts";
import { openEmbeddedEngine } from "../../../controller/store/embedded/index.ts";
import type { TenantStore } from "../../../controller/store/engine.ts";
import { realClock, seededRandom } from "../../helpers/clock.ts";
import { streamBytes, type Acknowledged } from "./acknowledged.ts";
import { disagreements } from "./verify.ts";

const CHILD = fileURLToPath(new URL("child.ts", import.meta.url));
const ROUND_DEADLINE_MS = 60_000;
/** The child is killed after so many acknowledgements, more or less. */
const ACKNOWLEDGED_MIN = 20;
const ACKNOWLEDGED_SPREAD = 1_500;

export interface CrashRounds {
  readonly rounds: number;
  readonly seed: number;
  readonly log: (line: string) => void;
}

/**
 * Kills a process with -9 while it writes to an embedded store, opens the store again and looks: nothing that was acknowledged may
 * be missing, nothing may be half there. Throws with every finding; the seed replays the moments, not the machine's timing.
 */
export async function crashRounds({ rounds, seed, log }: CrashRounds): Promise<{ readonly acknowledged: number }> {
  const random = seededRandom(seed);
  const dir = await mkdtemp(join(tmpdir(), "odp-crash-"));
  const acknowledged: Acknowledged[] = [];
  try {
    for (let round = 1; round <= rounds; round++) {
      const killAfter = ACKNOWLEDGED_MIN + Math.floor(random.next() * ACKNOWLEDGED_SPREAD);
      const fresh = await runAndKill([dir, String(round), String(seed + round)], killAfter);
      acknowledged.push(...fresh);
      const findings = await inspect(dir, acknowledged);
      log(`round ${round} of ${rounds}: killed after ${fresh.length} acknowledged writes, ${findings.length} findings`);
      if (findings.length > 0) throw new Error(`Seed ${seed}, round ${round}:\n${findings.slice(0, 20).join("\n")}`);
    }
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
  return { acknowledged: acknowledged.length };
}

/** What the child had said by the time it was dead. */
async function runAndKill(args: readonly string[], killAfter: number): Promise<readonly Acknowledged[]> {
  const child = spawn(process.execPath, ["--import", "tsx", CHILD, ...args], { stdio: ["ignore", "pipe", "pipe"] });
  const overdue = setTimeout(() => child.kill("SIGKILL"), ROUND_DEADLINE_MS);
  const errors: string[] = [];
  child.stderr.on("data", (chunk: Buffer) => errors.push(String(chunk)));
  const ended = exit(child);
  const lines: string[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    lines.push(line);
    if (lines.length === killAfter) child.kill("SIGKILL");
  }
  clearTimeout(overdue);
  await ended;
  if (lines.length < killAfter) throw new Error(`The writing process ended by itself after ${lines.length} writes:\n${errors.join("")}`);
  return lines.map((line) => JSON.parse(line) as Acknowledged);
}

function exit(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => child.once("exit", () => resolve()));
}

async function inspect(dir: string, acknowledged: readonly Acknowledged[]): Promise<readonly string[]> {
  const env = new Environment(join(dir, "tenants", "matrix", "lmdb"), realClock);
  const findings = [...disagreements(env)];
  await env.close();
  const engine = await openEmbeddedEngine({ dir, runtime: { clock: realClock, random: seededRandom(1) } });
  try {
    const store = await engine.tenant("matrix");
    for (const write of latest(acknowledged)) {
      const finding = await missing(store, write);
      if (finding !== undefined) findings.push(`${JSON.stringify(write)}: ${finding}`);
    }
  } finally {
    await engine.close();
  }
  return findings;
}

/** Of writes that replace one another only the last acknowledged one. */
function latest(acknowledged: readonly Acknowledged[]): Iterable<Acknowledged> {
  return new Map(acknowledged.map((write) => [subjectOf(write), write])).values();
}

function subjectOf(write: Acknowledged): string {
  switch (write.kind) {
    case "kv": return `kv ${write.key}`;
    case "object": return `object ${write.cid} ${write.id}`;
    case "records": return `records ${write.ids.join(" ")}`;
    case "blob": return `blob ${write.digest}`;
    case "stream": return `stream ${write.stream}`;
  }
}

async function missing(store: TenantStore, write: Acknowledged): Promise<string | undefined> {
  switch (write.kind) {
    case "kv": return missingKey(store, write);
    case "object": return missingObject(store, write);
    case "records": {
      const found = await store.objects.getRecords(write.ids.map((id) => ({ cid: write.cid, id })));
      return found.every((record, i) => text(record?.value) === write.ids[i]) ? undefined : "a record is missing or torn";
    }
    case "blob": {
      let size = 0;
      for await (const part of store.blobs.read(write.digest)) size += part.length;
      return size === write.size ? undefined : `has ${size} bytes`;
    }
    case "stream": return missingStream(store, write);
  }
}

async function missingKey({ kv }: TenantStore, { key, n }: Acknowledged & { readonly kind: "kv" }): Promise<string | undefined> {
  const [value, twin] = [text((await kv.get(key))?.value), text((await kv.get(`${key}/twin`))?.value)];
  if (value !== twin) return `torn: ${value} beside ${twin}`;
  return Number(value) >= n ? undefined : `holds ${value}`;
}

async function missingObject({ objects }: TenantStore, write: Acknowledged & { readonly kind: "object" }): Promise<string | undefined> {
  const key = { cid: write.cid, id: write.id };
  const [entity] = await objects.get([key]);
  const versions = (await objects.history(key, {}, { limit: 1_000 })).items.map((version) => Number(text(version.value)));
  if (!versions.includes(write.n)) return "its version is missing";
  // A write that was begun and never acknowledged may have come in after it.
  const reached = versions[0]!;
  if (entity === undefined) return write.alive && reached === write.n ? "is gone" : undefined;
  if (!write.alive && reached === write.n) return "lives again";
  const n = Number(text(entity.cells.get("n")?.value));
  if (n !== entity.numbers[0] || n !== reached) return `torn: cell ${n}, number ${entity.numbers[0]}, version ${reached}`;
  const found = await objects.find({ terms: [`n=${n}`] }, { limit: 1_000 });
  return found.items.some((other) => other.key.id === write.id) ? undefined : "is not found by its term";
}

async function missingStream({ blobs }: TenantStore, { stream, size }: Acknowledged & { readonly kind: "stream" }): Promise<string | undefined> {
  for (let offset = 0; offset < size; ) {
    const part = await blobs.readStream(stream, offset, 1_000_000);
    if (part.size < size) return `has ${part.size} bytes`;
    if (Buffer.compare(part.bytes, streamBytes(stream, offset, part.bytes.length)) !== 0) return `has other bytes near ${offset}`;
    offset += part.bytes.length;
  }
  return undefined;
}

function text(value: Uint8Array | undefined): string {
  return value === undefined ? "" : new TextDecoder().decode(value);
}
