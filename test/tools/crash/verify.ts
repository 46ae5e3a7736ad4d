import { decodeStored } from "../../../controller/store/format.ts";
import { decodeEntity } from "../../../controller/store/embedded/entities/form.ts";
import type { Indexed } from "../../../controller/store/embedded/entities/state.ts";
import type { Environment } from "../../../controller/store/embedded/environment/environment.ts";
import { bytesText, concat, u32 } from "../../../controller/store/embedded/bytes/keys.ts";
import { numberKey, numberOwner, recordTermPrefix } from "../../../controller/store/embedded/bytes/object-keys.ts";
import { indexedTerms } from "../../../controller/store/terms.ts";

/** Options of a range over everything. Each range needs new ones, because the library writes into them. */
const whole = (): { readonly start: Uint8Array } => ({ start: Uint8Array.of(0) });
const ULID_LENGTH = 26;

/**
 * Disagreements between the tables of one environment. There must be none, however its writer ended.
 */
export function disagreements(env: Environment): readonly string[] {
  return [
    ...entityDisagreements(env),
    ...indexDisagreements(env),
    ...recordDisagreements(env),
    ...edgeDisagreements(env),
  ];
}

/** Every living entity has all its index entries. */
function* entityDisagreements(env: Environment): Iterable<string> {
  for (const { key, value } of env.tables.objects.getRange(whole())) {
    const { terms, numbers } = decodeEntity(value).indexed();
    for (const term of terms)
      if (!env.tables.terms.doesExist(term, key)) yield `entity ${name(key)} is not under its term ${term}`;
    for (const [slot, number] of numbers.entries()) {
      if (number !== undefined && !env.tables.numbers.doesExist(numberKey(slot, number, key)))
        yield `entity ${name(key)} is not under its number ${number}`;
    }
  }
}

/** Every index entry belongs to a living entity that has it. */
function* indexDisagreements(env: Environment): Iterable<string> {
  for (const { key, value } of env.tables.terms.getRange({ start: "\u0000" })) {
    if (!indexedOf(env, value)?.terms.has(key)) yield `term ${key} names ${name(value)}, which does not bear it`;
  }
  for (const key of env.tables.numbers.getKeys(whole())) {
    const owner = numberOwner(key);
    const numbers = indexedOf(env, owner)?.numbers ?? [];
    const belongs = numbers.some(
      (number, slot) => number !== undefined && Buffer.compare(numberKey(slot, number, owner), key) === 0,
    );
    if (!belongs) yield `a number names ${name(owner)}, which does not have it`;
  }
}

function* recordDisagreements(env: Environment): Iterable<string> {
  let expected = 0;
  for (const { key, value } of env.tables.records.getRange(whole())) {
    const [, terms] = decodeStored<readonly [Uint8Array, readonly string[], number]>(value);
    const id = key.subarray(key.length - ULID_LENGTH);
    for (const term of indexedTerms(terms)) {
      expected += 1;
      const cid = Buffer.from(key).readUInt32BE();
      if (!env.tables.recordTerms.doesExist(concat(recordTermPrefix(cid, term), id)))
        yield `record ${bytesText(id)} is not under its term ${term}`;
    }
  }
  const found = env.tables.recordTerms.getKeysCount(whole());
  if (found !== expected) yield `${found} entries of terms of records, ${expected} expected`;
}

/** Every edge is stored at both ends, or is a removal that is stored at its source. */
function* edgeDisagreements(env: Environment): Iterable<string> {
  const [out, back] = [liveEdges(env, "edgesOut"), liveEdges(env, "edgesIn")];
  for (const edge of out) if (!back.has(edge)) yield `edge ${edge} is not at its target`;
  for (const edge of back) if (!out.has(edge)) yield `edge ${edge} is not at its source`;
}

function liveEdges(env: Environment, table: "edgesOut" | "edgesIn"): ReadonlySet<string> {
  const edges = new Set<string>();
  for (const { value } of env.tables[table].getRange(whole())) {
    const [type, fromCid, fromId, toCid, toId, timeUs, , live] = decodeStored<readonly unknown[]>(value);
    if (live) edges.add(JSON.stringify([type, fromCid, fromId, toCid, toId, timeUs]));
  }
  return edges;
}

function indexedOf(env: Environment, key: Uint8Array): Indexed | undefined {
  const stored = env.tables.objects.get(key);
  return stored === undefined ? undefined : decodeEntity(stored).indexed();
}

function name(key: Uint8Array): string {
  return `${Buffer.from(key).readUInt32BE()}:${bytesText(key.subarray(u32(0).length))}`;
}
