import { existsSync } from "node:fs";
import { join } from "node:path";
import { Outbox } from "../../../agent/outbox/outbox.ts";
import { Environment } from "../../../controller/store/embedded/environment/environment.ts";
import { openEmbeddedEngine } from "../../../controller/store/embedded/index.ts";
import type { TenantStore } from "../../../controller/store/engine.ts";
import { realClock, seededRandom } from "../../helpers/time/clock.ts";
import { OUTBOX, streamBytes, type Acknowledged } from "./acknowledged.ts";
import { disagreements } from "./verify.ts";

/** Missing, torn or contradictory data in the store that a writer left in `dir`. There must be none. */
export async function inspect(dir: string, acknowledged: readonly Acknowledged[]): Promise<readonly string[]> {
  const findings = [...(await contradictions(join(dir, "tenants", "matrix", "lmdb")))];
  const engine = await openEmbeddedEngine({ dir, runtime: { clock: realClock, random: seededRandom(1) } });
  try {
    await engine.createTenant("matrix");
    const store = await engine.tenant("matrix");
    for (const write of latest(acknowledged)) {
      const finding = await missing({ store, dir }, write);
      if (finding !== undefined) findings.push(`${JSON.stringify(write)}: ${finding}`);
    }
  } finally {
    await engine.close();
  }
  return findings;
}

/** A tenant whose creation was interrupted has no environment yet. */
async function contradictions(folder: string): Promise<readonly string[]> {
  if (!existsSync(join(folder, "data.mdb"))) return [];
  const env = new Environment(folder, realClock);
  try {
    return disagreements(env);
  } finally {
    await env.close();
  }
}

/** The last acknowledged write of each group of writes that replace one another. */
function latest(acknowledged: readonly Acknowledged[]): Iterable<Acknowledged> {
  return new Map(acknowledged.map((write) => [subjectOf(write), write])).values();
}

function subjectOf(write: Acknowledged): string {
  switch (write.kind) {
    case "kv":
      return `kv ${write.key}`;
    case "object":
      return `object ${write.cid} ${write.id}`;
    case "records":
      return `records ${write.ids.join(" ")}`;
    case "blob":
      return `blob ${write.digest}`;
    case "stream":
      return `stream ${write.stream}`;
    case "outbox":
      return "outbox";
  }
}

interface Left {
  readonly store: TenantStore;
  readonly dir: string;
}

async function missing({ store, dir }: Left, write: Acknowledged): Promise<string | undefined> {
  switch (write.kind) {
    case "kv":
      return missingKey(store, write);
    case "object":
      return missingObject(store, write);
    case "records": {
      const found = await store.objects.getRecords(write.ids.map((id) => ({ cid: write.cid, id })));
      return found.every((record, i) => text(record?.value) === write.ids[i])
        ? undefined
        : "a record is missing or torn";
    }
    case "blob": {
      let size = 0;
      for await (const part of store.blobs.read(write.digest)) size += part.length;
      return size === write.size ? undefined : `has ${size} bytes`;
    }
    case "stream":
      return missingStream(store, write);
    case "outbox":
      return missingEntry(dir, write);
  }
}

async function missingKey(
  { kv }: TenantStore,
  { key, n }: Acknowledged & { readonly kind: "kv" },
): Promise<string | undefined> {
  const [value, twin] = [text((await kv.get(key))?.value), text((await kv.get(`${key}/twin`))?.value)];
  if (value !== twin) return `torn: ${value} beside ${twin}`;
  return Number(value) >= n ? undefined : `holds ${value}`;
}

async function missingObject(
  { objects }: TenantStore,
  write: Acknowledged & { readonly kind: "object" },
): Promise<string | undefined> {
  const key = { cid: write.cid, id: write.id };
  const [entity] = await objects.get([key]);
  const versions = (await objects.history(key, {}, { limit: 1_000 })).items.map((version) =>
    Number(text(version.value)),
  );
  if (!versions.includes(write.n)) return "its version is missing";
  // A later write may have taken effect without being acknowledged.
  const reached = versions[0]!;
  if (entity === undefined) return write.alive && reached === write.n ? "is gone" : undefined;
  if (!write.alive && reached === write.n) return "lives again";
  const n = Number(text(entity.cells.get("n")?.value));
  if (n !== entity.numbers[0] || n !== reached)
    return `torn: cell ${n}, number ${entity.numbers[0]}, version ${reached}`;
  const found = await objects.find({ terms: [`n=${n}`] }, { limit: 1_000 });
  return found.items.some((other) => other.key.id === write.id) ? undefined : "is not found by its term";
}

async function missingStream(
  { blobs }: TenantStore,
  { stream, size }: Acknowledged & { readonly kind: "stream" },
): Promise<string | undefined> {
  for (let offset = 0; offset < size; ) {
    const part = await blobs.readStream(stream, offset, 1_000_000);
    if (part.size < size) return `has ${part.size} bytes`;
    if (Buffer.compare(part.bytes, streamBytes(stream, offset, part.bytes.length)) !== 0)
      return `has other bytes near ${offset}`;
    offset += part.bytes.length;
  }
  return undefined;
}

/** Entry `n` must have sequence `n` and be counted by the mark. */
async function missingEntry(
  dir: string,
  { n }: Acknowledged & { readonly kind: "outbox" },
): Promise<string | undefined> {
  const outbox = await Outbox.open({
    folder: join(dir, OUTBOX.folder),
    clock: realClock,
    random: seededRandom(1),
    maxBytes: OUTBOX.maxBytes,
  });
  const reader = outbox.reader(outbox.firstSequence);
  try {
    const written = Number(outbox.mark(OUTBOX.mark) ?? 0);
    if (written < n || outbox.nextSequence !== written + 1 || outbox.damagedFrames > 0)
      return `the mark says ${written}, the next entry is ${outbox.nextSequence}`;
    let expected = outbox.firstSequence;
    for (
      let entries = await reader.next(100, 1_000_000);
      entries.length > 0;
      entries = await reader.next(100, 1_000_000)
    ) {
      for (const { sequence, body } of entries) {
        if (sequence !== expected++ || body?.$case !== "output" || body.value.commandId !== String(sequence))
          return `entry ${sequence} is not what was written`;
      }
    }
    return expected === written + 1 ? undefined : `entries end at ${expected - 1} of ${written}`;
  } finally {
    await reader.close();
    await outbox.close();
  }
}

function text(value: Uint8Array | undefined): string {
  return value === undefined ? "" : new TextDecoder().decode(value);
}
