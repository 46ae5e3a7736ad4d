import { hash } from "node:crypto";
import { AppError } from "../../../../common/errors.ts";
import {
  entropyPlus,
  formatObjectId,
  joinKeys,
  parseObjectId,
  ulidOf,
  ulidSeries,
  uuidOf,
} from "../../../../common/ids.ts";
import { OBJECT_ID_MAX_BYTES } from "../../../../common/limits.ts";
import type { Row, Value } from "../../../../common/value.ts";
import type { ClassOptions, ClassView, NewRecord } from "../types.ts";
import { canonicalText } from "./values.ts";

/** Source of generated ids: a time and ten bytes, random or a hash. */
export interface IdSource {
  readonly timeMs: number;
  readonly entropy: () => Uint8Array;
}

export interface NewKey {
  readonly key: string;
  /** Just generated: no object has it yet. */
  readonly fresh: boolean;
}

/** The parts of a class that make the ids of its objects. */
export interface Identified extends Pick<ClassView, "path" | "label" | "keys"> {
  readonly options: Pick<ClassOptions, "keyMode">;
}

/**
 * The part after the colon of the id of a row to be written. A given id is used in every mode; otherwise the key mode
 * of the class decides.
 */
export function keyOf(view: Identified, row: Row, given: Value | undefined, source: IdSource): NewKey {
  if (given !== undefined && given !== null && given !== "")
    return { key: givenKey(view, canonicalText(given)), fresh: false };
  switch (view.options.keyMode) {
    case "uuid":
      return { key: uuidOf(source.timeMs, source.entropy()), fresh: true };
    case "md5":
      return { key: hash("md5", keyText(view, row), "hex"), fresh: false };
    case "manu":
      return { key: checkedKey(keyText(view, row)), fresh: false };
  }
}

/**
 * The key made from the key columns of a row. `undefined` if the class does not make keys from columns, or if one of
 * them is not set.
 */
export function keyFromColumns(view: ClassView, row: Row): string | undefined {
  const { keyMode } = view.options;
  if (keyMode === "uuid" || view.keys.length === 0 || view.keys.some((name) => row[name] === undefined))
    return undefined;
  const text = keyText(view, row);
  return keyMode === "manu" ? text : hash("md5", text, "hex");
}

/**
 * The whole id that an insert of these canonical values gets from its key columns. `undefined` if the class does not
 * make ids from columns, or if one of them is not set.
 */
export function idFromColumns(view: ClassView, row: Row): string | undefined {
  const key = view.kind === "record" ? undefined : keyFromColumns(view, row);
  return key === undefined ? undefined : wholeId(view, key);
}

/**
 * Entropy for generated ids. The ids of one series ascend, even if series of other times are used in between. Of two
 * successive series in the same millisecond, the later one has greater ids.
 */
export class AscendingEntropy {
  readonly #random: (length: number) => Uint8Array;
  #timeMs = NaN;
  #next: Uint8Array = new Uint8Array(0);

  constructor(random: (length: number) => Uint8Array) {
    this.#random = random;
  }

  /**
   * Returns a function that gives new entropy for that time with each call. `count`: expected number of calls; more are
   * possible.
   */
  series(timeMs: number, count: number): () => Uint8Array {
    const block = Math.max(1, count);
    let first = this.#next;
    let used = block;
    return () => {
      if (used === block) {
        first = this.#reserve(timeMs, block);
        used = 0;
      }
      return entropyPlus(first, used++);
    };
  }

  #reserve(timeMs: number, count: number): Uint8Array {
    const wholeMs = Math.trunc(timeMs);
    const first = wholeMs === this.#timeMs ? this.#next : this.#random(10);
    this.#timeMs = wholeMs;
    this.#next = entropyPlus(first, count);
    return first;
  }
}

type Identity = Pick<NewRecord, "identity" | "ordinal" | "timeMs" | "isOrdered">;

/** Ids for sources that may repeat themselves. The same identity, ordinal and time give the same id. */
export class RepeatableIds {
  #identity = "";
  #timeMs = 0;
  #series: ((ordinal: number) => string) | undefined;

  /** For an object. */
  source({ identity, ordinal, timeMs, isOrdered }: Identity): IdSource {
    if (isOrdered) return { timeMs, entropy: () => orderedEntropy(identity, ordinal) };
    return { timeMs, entropy: () => identityHash(ordinal === undefined ? identity : `${identity}/${ordinal}`) };
  }

  /** For a record. */
  ulid({ identity, ordinal, timeMs, isOrdered }: Identity): string {
    if (isOrdered) return ulidOf(timeMs, orderedEntropy(identity, ordinal));
    return ordinal === undefined ? ulidOf(timeMs, identityHash(identity)) : this.#seriesOf(identity, timeMs)(ordinal);
  }

  /** Caches the series, because records of one identity come one after the other. */
  #seriesOf(identity: string, timeMs: number): (ordinal: number) => string {
    if (this.#series === undefined || identity !== this.#identity || timeMs !== this.#timeMs) {
      this.#series = ulidSeries(timeMs, identityHash(identity));
      this.#identity = identity;
      this.#timeMs = timeMs;
    }
    return this.#series;
  }
}

function orderedEntropy(identity: string, ordinal = 0): Uint8Array {
  return entropyPlus(identityHash(identity), ordinal);
}

/** Ten bytes that identify the source of a record. */
function identityHash(identity: string): Uint8Array {
  return Buffer.from(hash("sha256", identity, "hex").slice(0, 20), "hex");
}

export function wholeId(view: ClassView, key: string): string {
  return formatObjectId(view.label, key);
}

/** The part after the colon of a given id, which may be bare or whole. */
function givenKey(view: Identified, id: string): string {
  const parts = parseObjectId(id);
  return checkedKey(parts?.label === view.label ? parts.key : id);
}

function keyText(view: Pick<ClassView, "path" | "keys">, row: Row): string {
  if (view.keys.length === 0) throw new AppError("invalid", `[Valid] class ${view.path}: an object needs an id.`);
  return joinKeys(view.keys.map((name) => keyColumnText(view, name, row[name])));
}

function keyColumnText(view: Pick<ClassView, "path">, name: string, value: Value | undefined): string {
  const text = value === undefined ? "" : canonicalText(value);
  if (text === "")
    throw new AppError("invalid", `[Valid] class ${view.path}: the key column ${name} is not set.`, {
      details: { column: name },
    });
  return text;
}

function checkedKey(key: string): string {
  if (!key.isWellFormed())
    throw new AppError("invalid", "[Valid] An object id has a lone surrogate, half of a character.");
  if (Buffer.byteLength(key) <= OBJECT_ID_MAX_BYTES) return key;
  throw new AppError("too_large", `[Valid] An object id has at most ${OBJECT_ID_MAX_BYTES} bytes.`, {
    details: { limit: "OBJECT_ID_MAX_BYTES" },
  });
}
